import HTTPServer
import WireText

/// An API that reports the received request. Every path but that of its metadata (RFC 9728) needs a bearer token (RFC 6750).
struct ProtectedAPI: Sendable {
    let server: SharedAuthorizationServer
    let issuer: String

    private static let metadata = "/.well-known/oauth-protected-resource"

    func respond(to request: ServerRequest) -> ServerResponse {
        if request.path == Self.metadata { return .json(200, metadata(of: request)) }
        let fields = request.values("Authorization")
        guard fields.contains(where: { Self.bearerToken($0) != nil }) else {
            // No error code for a request without credentials (RFC 6750, section 3.1).
            return refusal(
                challenge: "Bearer realm=\"playground\", resource_metadata=\"\(address(of: request))\(Self.metadata)\"",
                error: "unauthorized",
                sentence: "This API wants an access token, and the request brought none.")
        }
        guard fields.count == 1, let token = Self.bearerToken(fields[0]),
            let grant = server.withServer({ $0.grant(forAccessToken: token, now: .now) })
        else {
            return refusal(
                challenge: "Bearer realm=\"playground\", error=\"invalid_token\"", error: "invalid_token",
                sentence: "The access token is unknown, expired or revoked.")
        }
        return .json(200, RequestReport(request: request, token: token, scope: grant.scope).json)
    }

    private func address(of request: ServerRequest) -> String { "http://\(request.authority)" }

    private func metadata(of request: ServerRequest) -> JSON {
        .object([
            .init("resource", .string(address(of: request))), .init("authorization_servers", .array([.string(issuer)])),
            .init("scopes_supported", .array(AuthorizationServer.scopes.sorted().map { .string($0) })),
            .init("bearer_methods_supported", .array(["header"])),
        ])
    }

    private func refusal(challenge: String, error: String, sentence: String) -> ServerResponse {
        var response = ServerResponse.json(
            401, .object([.init("error", .string(error)), .init("message", .string(sentence))]))
        response.set("WWW-Authenticate", challenge)
        return response
    }

    static func bearerToken(_ field: String) -> String? {
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }
}

/// The API's report about a request. Tokens are shortened to their first characters and their length everywhere.
struct RequestReport: Sendable {
    let json: JSON

    init(request: ServerRequest, token: String, scope: String) {
        let shown = Self.fingerprint(of: token)
        func masked(_ text: String) -> JSON { .string(text.replacing(token, with: shown)) }

        var names: [String] = []
        var values: [String: String] = [:]
        // Host has its own line.
        for (name, value) in request.fields where name.lowercased() != "host" {
            if let earlier = values[name] {
                // RFC 9110, section 5.3.
                values[name] = "\(earlier), \(value)"
            } else {
                names.append(name)
                values[name] = value
            }
        }
        json = .object([
            .init("message", "The token was accepted. This is what arrived:"),
            .init("method", .string(request.method)),
            .init("path", masked(request.path + (request.query.map { "?\($0)" } ?? ""))),
            .init("host", masked(request.authority)),
            .init("token", .string(shown)),
            .init("scope", .string(scope)),
            .init("body_bytes", .number(request.bodyLength)),
            .init("headers", .object(names.map { .init($0, masked(values[$0] ?? "")) })),
        ])
    }

    /// Enough to distinguish two tokens, too little to use one.
    static func fingerprint(of token: String) -> String {
        token.utf8.count < 16
            ? "… (\(token.utf8.count) characters)" : "\(token.prefix(4))… (\(token.utf8.count) characters)"
    }
}
