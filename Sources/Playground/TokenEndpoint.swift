import HTTPServer
import Synchronization
import WireText

/// The authorization server, shared by its endpoints and the API.
final class SharedAuthorizationServer: Sendable {
    private let server: Mutex<AuthorizationServer>

    init(_ server: AuthorizationServer) {
        self.server = Mutex(server)
    }

    func withServer<Answer: Sendable>(_ body: (inout AuthorizationServer) -> Answer) -> Answer {
        server.withLock { body(&$0) }
    }
}

/// The authorization server's endpoints over HTTP.
enum TokenEndpoint {
    /// A token request is a few hundred bytes.
    static let maxBodyBytes = 16 * 1024

    static func router(server: SharedAuthorizationServer) -> Router {
        var router = Router()
        router.on("POST", "/token") { request, _ in
            answer(request) { form, client in
                response(server.withServer { $0.token(form: form, client: client, now: .now).map(\.json) })
            }
        }
        router.on("POST", "/revoke") { request, _ in
            answer(request) { form, client in
                server.withServer { $0.revoke(form: form, client: client, now: .now) }.map(response)
                    ?? .json(200, .object([]))
            }
        }
        router.on("POST", "/register") { request, _ in
            switch server.withServer({ $0.registrations.register(request.body, now: .now) }) {
            case .success(let client): .json(201, client)
            case .failure(let error): response(error)
            }
        }
        router.on("POST", "/device_authorization") { request, _ in
            let issuer = issuer(of: request)
            return answer(request) { form, client in
                response(
                    server.withServer { server in
                        server.beginDevice(form: form, client: client, now: .now).map { $0.json(issuer: issuer) }
                    })
            }
        }
        for name in ["oauth-authorization-server", "openid-configuration"] {
            router.on("GET", "/.well-known/\(name)") { request, _ in
                .json(200, ServerMetadata.json(issuer: issuer(of: request)))
            }
        }
        SignInPages.add(to: &router, server)
        return router
    }

    static func issuer(of request: ServerRequest) -> String {
        "http://\(request.authority.isEmpty ? "127.0.0.1" : request.authority)"
    }

    private static func answer(
        _ request: ServerRequest, _ decide: (FormParameters, ClientAuthentication) -> ServerResponse
    ) -> ServerResponse {
        let mediaType = request.value("Content-Type")?.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard mediaType == "application/x-www-form-urlencoded" else {
            return response(.invalidRequest("The body must be application/x-www-form-urlencoded."))
        }
        guard let form = FormParameters(request.body) else {
            return response(.invalidRequest("The body is malformed, or a parameter is given twice."))
        }
        return decide(form, ClientAuthentication(authorization: request.values("Authorization"), form: form))
    }

    private static func response(_ outcome: Result<JSON, OAuthError>) -> ServerResponse {
        switch outcome {
        case .success(let json): .json(200, json)
        case .failure(let error): response(error)
        }
    }

    private static func response(_ error: OAuthError) -> ServerResponse {
        var response = ServerResponse.json(error.status, error.json)
        if error.wantsChallenge { response.set("WWW-Authenticate", "Basic realm=\"playground\"") }
        return response
    }
}

extension ServerResponse {
    /// An answer that may hold a token, so it must not be cached (RFC 6749, section 5.1).
    static func json(_ status: Int, _ json: JSON) -> ServerResponse {
        var response = ServerResponse(status: status, type: "application/json", json.document)
        response.set("Cache-Control", "no-store")
        return response
    }
}
