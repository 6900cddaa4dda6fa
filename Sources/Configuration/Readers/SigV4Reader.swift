import HTTPMessage
import WireText

/// Reads `sigv4` of an entry of `inject`.
enum SigV4Reader {
    private static let keyNames = ["access_key_id", "secret_access_key", "session_token"]

    /// Returns `nil` if a value is missing or invalid.
    static func read(_ section: Section) -> SigV4Settings? {
        defer { section.finish() }
        let region = section.value("region", region)
        let service = section.value("service") { text throws(BadValue) in try word(text, "execute-api or s3") }
        for (key, example) in [("region", "eu-central-1"), ("service", "execute-api or s3")] {
            section.need(key, saying: "\(section.path): `\(key)` is missing: write \(example)")
        }
        guard let credentials = credentials(section), let region, let service else { return nil }
        return SigV4Settings(region: region, service: service, credentials: credentials)
    }

    static func region(_ text: String) throws(BadValue) -> String { try word(text, "eu-central-1") }

    /// A word in the credential scope of a signature.
    private static func word(_ text: String, _ example: String) throws(BadValue) -> String {
        try Grammar.checked(
            text,
            (1...64).contains(text.utf8.count)
                && text.utf8.allSatisfy { ASCII.isDigit($0) || (0x61...0x7A).contains($0) || "-._".utf8.contains($0) },
            BadValue("write a name in small letters such as \(example)", matching: "^[a-z0-9._-]{1,64}$"))
    }

    /// Reads access keys beside `region` and `service`, access keys under `credentials`, or `credentials: container`.
    private static func credentials(_ section: Section) -> SigV4Settings.Credentials? {
        let found = section.either("credentials") { text throws(BadValue) in
            guard text == "container" else {
                throw BadValue("write container, or a mapping with access_key_id", fits: .words(["container"]))
            }
            return SigV4Settings.Credentials.container(try container(section.diagnostics))
        } or: { inner in
            defer { inner.finish() }
            return keys(inner)
        }
        guard section.has("credentials") else { return keys(section) }
        for key in keyNames where section.has(key) {
            section.error(key, "write either the keys or `credentials`, not both")
            _ = section.node(key)
        }
        return found
    }

    /// Reads access keys. The caller reports missing ones.
    static func accessKeys(_ section: Section) -> (id: SecretSource?, secret: SecretSource?, token: SecretSource?) {
        (
            section.textOrSecret("access_key_id", rule: InjectedValue.word),
            section.secret("secret_access_key", rule: InjectedValue.fieldValue),
            section.secret("session_token", rule: InjectedValue.word)
        )
    }

    private static func keys(_ section: Section) -> SigV4Settings.Credentials? {
        let (id, secret, token) = accessKeys(section)
        guard section.has("access_key_id"), section.has("secret_access_key") else {
            section.diagnostics.error(
                section.position,
                "\(section.path): write `access_key_id` and `secret_access_key`, or `credentials: container`")
            return nil
        }
        guard let id, let secret, !section.has("session_token") || token != nil else { return nil }
        return .keys(accessKeyID: id, secretAccessKey: secret, sessionToken: token)
    }

    // MARK: Container credentials

    /// Names of environment variables with the address and token of the container service.
    static let variables = [
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    ]

    /// Addresses of the container services: ECS, and EKS Pod Identity.
    private static let serviceHosts = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"]

    private static func container(_ diagnostics: Diagnostics) throws(BadValue) -> SigV4Settings.Container {
        func variable(_ name: String) -> String? { diagnostics.environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        var authorization: SecretSource?
        if let path = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            authorization = .file(path: path)
        } else if variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") != nil {
            authorization = .environment(name: "AWS_CONTAINER_AUTHORIZATION_TOKEN")
        }
        if let path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            guard path.hasPrefix("/"), let url = try? WebURL("http://\(serviceHosts[0])\(path)") else {
                throw BadValue("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI has to begin with /", quotes: false)
            }
            return .init(url: url, authorization: authorization)
        }
        guard let url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") else {
            throw BadValue(
                "neither AWS_CONTAINER_CREDENTIALS_FULL_URI nor AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is set. The "
                    + "container service sets them: elsewhere, write `access_key_id` and `secret_access_key`",
                quotes: false)
        }
        guard let parts = try? WebURL(url) else {
            throw BadValue("AWS_CONTAINER_CREDENTIALS_FULL_URI is no http:// or https:// URL", quotes: false)
        }
        let host = parts.authority.host
        guard parts.scheme == .https || host.isLoopback || serviceHosts.contains(host.description) else {
            throw BadValue(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI is an http:// URL of a host other than loopback and the container "
                    + "service's, so the credentials would cross the network in plain text", quotes: false)
        }
        return .init(url: parts, authorization: authorization)
    }
}
