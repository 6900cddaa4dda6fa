import HTTPMessage
import Heimdallr

/// Reads `auto` of an upstream: the settings of `client: auto`.
struct AutoReader {
    private let section: Section
    private var client: ClientSettings
    private var auto: AutoSettings

    /// Whether programs see the API's challenges and metadata.
    enum Discovery: String, CaseIterable { case hide, pass }
    private enum Grant: String, CaseIterable {
        case authorizationCode = "authorization_code"
        case clientCredentials = "client_credentials"
    }
    private enum Subject: String, CaseIterable { case idToken = "id_token" }

    /// The value of `client` that selects these settings.
    static let word = "auto"

    /// Returns the client's name: the host, with dashes in place of colons and brackets.
    static func name(of host: HostPattern) -> String {
        String(host.description.map { ":[]".contains($0) ? "-" : $0 })
    }

    /// - Parameters:
    ///   - section: the section `auto`, possibly empty.
    ///   - upstream: other settings of the upstream, read before.
    static func read(_ section: Section, _ upstream: UpstreamSettings) -> (client: ClientSettings, Discovery) {
        var client = ClientSettings(name: name(of: upstream.host))
        client.grantType = .authorizationCode
        client.allowPlaintext = upstream.allowPlaintext
        client.proxy = upstream.proxy
        let resource = upstream.url?.description ?? "https://\(upstream.host)"
        var reader = AutoReader(
            section: section, client: client, auto: AutoSettings(resource: resource, tls: upstream.tls))
        reader.readClient()
        var discovery = Discovery.hide
        section.read("discovery", into: &discovery, Grammar.word)
        section.finish()
        reader.client.auto = reader.auto
        return (reader.client, discovery)
    }

    private mutating func readClient() {
        client.issuer = section.value("issuer", ClientReader.issuer)
        auto.clientDocument = section.value("client_document", Self.document)
        var shared = ClientReader(section: section, settings: client, isAuto: true)
        shared.readAuthentication()
        shared.readRequest()
        client = shared.settings
        auto.allowedScopes = section.list("allow_scopes", Grammar.scopes)?.flatMap { $0 }
        readSubject()
        var grant = Grant.authorizationCode
        section.read("grant_type", into: &grant, Grammar.word)
        if grant == .clientCredentials {
            client.grantType = .clientCredentials
            needClient(
                for: "grant_type",
                "without a person, the server has to know the client: write `client_id` or `client_document`")
            section.refuse(
                "grant_type", without: "issuer",
                saying:
                    "write the client's server as `issuer`: no person checks which server the API names")
        }
        readProof()
        ClientReader.readServer(section, into: &client)
        section.refuse(
            "pkce", without: "issuer", saying: "write the server that this is about as `issuer`: an API may name others"
        )
        ClientReader.checkPKCE(section, client)
        ClientReader.warnOfTemplates(section, client)
    }

    /// Reads `subject_token`: `{client: idp, token: id_token}`.
    private mutating func readSubject() {
        guard let subject = section.section("subject_token") else { return }
        auto.subjectClient = subject.value("client", Grammar.nonempty)
        var token = Subject.idToken
        subject.read("token", into: &token, Grammar.word)
        subject.need("client", saying: "\(subject.path): write {client: NAME}, the client that people sign in to")
        subject.finish()
        client.grantType = .jwtBearer
        needClient(
            for: "subject_token",
            "without a sign-in at the API's server, this server has to know the client: write `client_id` or "
                + "`client_document`")
        section.refuse(
            "grant_type", with: "subject_token",
            saying: "`subject_token` already sets the grant: leave one of them out")
    }

    private func needClient(for key: String, _ message: String) {
        if !section.has("client_document") { section.refuse(key, without: "client_id", saying: message) }
    }

    private mutating func readProof() {
        section.refuse(
            "client_document", with: "client_id", saying: "there is a `client_id` already: leave one of them out")
        section.refuse("client_secret", without: "client_id", saying: "this needs `client_id` too")
        for (key, name) in [
            ("client_secret", "secret"), ("client_assertion", "assertion"), ("headers", "field"),
            ("tls", "certificate"),
        ] where key != "tls" || client.tls.certFile != nil {
            section.refuse(
                key, without: "issuer",
                saying:
                    "write the \(name)'s server as `issuer`: without it, any server that the API names would see the "
                    + name)
        }
        for key in ["client_key", "client_assertion", "token_endpoint_auth_method"] {
            needClient(for: key, "this needs `client_id` or `client_document`, so that the server finds the client")
        }
        if client.authMethod != .none, client.clientID.isEmpty { client.clientID = auto.clientDocument ?? "" }
    }

    /// Reads the address of a client ID metadata document: https, with a path and without a query.
    private static func document(_ text: String) throws(BadValue) -> String {
        let url = try Grammar.endpoint(text)
        let example = "write an https:// URL with a path, such as https://ops.example.com/heimdallr-proxy.json"
        guard let parts = try? WebURL(url), parts.scheme == .https, parts.start.hasPrefix(parts.scheme.rawValue),
            parts.query == nil, parts.path.count > 1
        else { throw BadValue(example) }
        return url
    }
}
