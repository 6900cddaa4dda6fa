import TestSupport

@testable import Heimdallr

/// An API and its authorization server at one origin: the API at `/mcp`, the issuer at `/as`.
struct EnrollingServer {
    static let resourcePath = "/.well-known/oauth-protected-resource/mcp"
    static let registration = "/register"

    let server: LoginServer
    var api: String { server.url + "/mcp" }
    var issuer: String { server.issuer }

    init(more: String = #""registration_endpoint":"%/register","code_challenge_methods_supported":["S256"]"#) throws {
        server = try LoginServer(path: "/as")
        describe(more)
        publish()
        server[Self.registration] = .json(#"{"client_id":"registered-1"}"#, status: 201)
        server.giveToken()
    }

    /// Metadata of the authorization server; `%` is its origin.
    func describe(_ more: String) {
        server[LoginServer.wellKnown + "/as"] = .json(
            server.metadata(more: more.replacing("%", with: server.url)))
    }

    /// Metadata of the API.
    func publish(resource: String? = nil, issuers: [String]? = nil, more: String = "") {
        let servers = (issuers ?? [issuer]).map { "\"\($0)\"" }.joined(separator: ",")
        server[Self.resourcePath] = .json(
            #"{"resource":"\#(resource ?? api)","authorization_servers":[\#(servers)]\#(more.isEmpty ? "" : "," + more)}"#
        )
    }

    func client(
        store: any OAuthAccessTokenStore = OAuthAccessTokenMemoryStore(), clock: HeimdallrClock = .system,
        identifier: String? = nil, key: String? = nil, grant: any OAuthAuthorizationGrant = InteractiveGrant(),
        dpop: DPoPSetting? = nil,
        _ change: (inout EnrolmentSettings) -> Void = { _ in }
    ) throws -> Heimdallr {
        var enrolment = EnrolmentSettings(resource: api)
        change(&enrolment)
        var configuration = HeimdallrConfiguration()
        configuration.enrolment = enrolment
        configuration.dpop = dpop
        configuration.allowPlaintext = true
        let credentials: any OAuthClientCredentials =
            if let key {
                OAuthClientAssertionCredentials(identifier: identifier ?? "", key: Secret(key))
            } else if let identifier { OAuthClientSecretCredentials(identifier: identifier) } else {
                OAuthNoClientCredentials()
            }
        return try Heimdallr(
            name: "mcp", configuration: configuration, credentials: credentials, grant: grant,
            httpClient: try SharedCurl.client(), store: store, clock: clock)
    }

    /// The whole way of a person.
    /// - Returns: the query at the authorization endpoint.
    @discardableResult
    func logIn(_ client: Heimdallr, more: String = "") async throws -> ReadQuery {
        let attempt = try await client.beginLogin(redirectURI: LoginServer.callback)
        try await client.finishLogin(attempt, redirectedTo: server.answer(attempt, more: more))
        return ReadQuery(attempt.url)
    }

    /// Forms of the token requests so far.
    var tokenForms: [ReadQuery] { server.requests("/token").map { ReadQuery(query: $0.text) } }
    /// All values in the forms of an endpoint's requests.
    func shown(in path: String) -> Set<String> {
        Set(server.requests(path).flatMap { ReadQuery(query: $0.text).pairs.map(\.value) })
    }

    var registrations: Int { server.requests(Self.registration).count }
}
