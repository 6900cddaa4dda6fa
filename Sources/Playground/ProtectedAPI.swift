import HTTPServer
import WireText

/// An API that reports the received request. All paths need a bearer token (RFC 6750), except its metadata (RFC 9728).
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
                "Bearer realm=\"playground\", resource_metadata=\"\(address(of: request))\(Self.metadata)\"",
                "unauthorized",
                "This API requires an access token, and the request has none.")
        }
        guard fields.count == 1, let token = Self.bearerToken(fields[0]),
            let grant = server.withServer({ $0.grant(forAccessToken: token, now: .now) })
        else {
            return refusal(
                "Bearer realm=\"playground\", error=\"invalid_token\"", "invalid_token",
                "The access token is unknown, expired or revoked.")
        }
        return .json(200, report(request, token, grant.scope))
    }

    private func address(of request: ServerRequest) -> String { "http://\(request.authority)" }

    private func metadata(of request: ServerRequest) -> JSON {
        [
            "resource": .string(address(of: request)), "authorization_servers": [.string(issuer)],
            "scopes_supported": JSON(AuthorizationServer.scopes), "bearer_methods_supported": ["header"],
        ]
    }

    private func refusal(_ challenge: String, _ error: String, _ sentence: String) -> ServerResponse {
        var response = ServerResponse.json(401, ["error": .string(error), "message": .string(sentence)])
        response.set("WWW-Authenticate", challenge)
        return response
    }

    private static func bearerToken(_ field: String) -> String? {
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }

    /// Reports the received request. Shows only the first characters and the length of the token.
    private func report(_ request: ServerRequest, _ token: String, _ scope: String) -> JSON {
        let shown = Self.fingerprint(of: token)
        func masked(_ text: String) -> JSON { .string(text.replacing(token, with: shown)) }
        var fields: [(name: String, value: String)] = []
        // Host has its own line.
        for (name, value) in request.fields where name.lowercased() != "host" {
            // Joins fields of the same name (RFC 9110, section 5.3).
            if let index = fields.firstIndex(where: { $0.name == name }) {
                fields[index].value += ", \(value)"
            } else {
                fields.append((name, value))
            }
        }
        return [
            "message": "The token was accepted. This is what arrived:", "method": .string(request.method),
            "path": masked(request.path + (request.query.map { "?\($0)" } ?? "")), "host": masked(request.authority),
            "token": .string(shown), "scope": .string(scope), "body_bytes": .number(request.bodyLength),
            "headers": .object(fields.map { .init($0.name, masked($0.value)) }),
        ]
    }

    /// Returns enough of the token to distinguish it from others, but too little to use it.
    private static func fingerprint(of token: String) -> String {
        "\(token.utf8.count < 16 ? "" : token.prefix(4))… (\(token.utf8.count) characters)"
    }
}
