import HTTPServer
import WireText

/// An API that requires a bearer token (RFC 6750) on every path, and reports the received request.
struct ProtectedAPI: Sendable {
    let server: SharedAuthorizationServer

    func respond(to request: ServerRequest) -> ServerResponse {
        let fields = request.values("Authorization")
        guard fields.contains(where: { Self.bearerToken($0) != nil }) else {
            // No error code for a request without credentials (RFC 6750, section 3.1).
            return refusal(
                challenge: "Bearer realm=\"playground\"", error: "unauthorized",
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
