import HTTPServer
import Synchronization
import WireText

/// The authorization server, shared by its endpoints and the API.
final class SharedAuthorizationServer: Sendable {
    private let server: Mutex<AuthorizationServer>

    init(_ server: AuthorizationServer) { self.server = Mutex(server) }

    func withServer<Answer: Sendable, Failure>(
        _ body: (inout AuthorizationServer) throws(Failure) -> Answer
    ) throws(Failure) -> Answer { try server.withLock { server throws(Failure) in try body(&server) } }
}

/// The authorization server's endpoints over HTTP.
enum TokenEndpoint {
    /// Largest body of a request. A token request has a few hundred bytes.
    static let maxBodyBytes = 16 * 1024

    static func router(server: SharedAuthorizationServer) -> Router {
        var router = Router()
        router.on("POST", "/token") { request, _ in
            answer(request, server) { server, form, client throws(ErrorAnswer) in
                try server.token(form: form, client: client, now: .now).json
            }
        }
        router.on("POST", "/revoke") { request, _ in
            answer(request, server) { server, form, client throws(ErrorAnswer) in
                try server.revoke(form: form, client: client, now: .now)
                return [:]
            }
        }
        router.on("POST", "/device_authorization") { request, _ in
            answer(request, server) { server, form, client throws(ErrorAnswer) in
                try server.beginDevice(form: form, client: client, now: .now).json(issuer: issuer(of: request))
            }
        }
        router.on("POST", "/register") { request, _ in
            response(201) { () throws(ErrorAnswer) in
                try server.withServer { server throws(ErrorAnswer) in
                    try server.registrations.register(request.body, now: .now)
                }
            }
        }
        for name in ["oauth-authorization-server", "openid-configuration"] {
            router.on("GET", "/.well-known/\(name)") { request, _ in
                .json(200, PublishedMetadata.json(issuer: issuer(of: request)))
            }
        }
        SignInPages.add(to: &router, server)
        return router
    }

    static func issuer(of request: ServerRequest) -> String {
        "http://\(request.authority.isEmpty ? "127.0.0.1" : request.authority)"
    }

    private static func answer(
        _ request: ServerRequest, _ server: SharedAuthorizationServer,
        _ decide: (inout AuthorizationServer, FormParameters, PresentedCredentials) throws(ErrorAnswer) -> JSON
    ) -> ServerResponse {
        response(200) { () throws(ErrorAnswer) in
            let mediaType = request.value("Content-Type")?.prefix { $0 != ";" && $0 != " " }.lowercased()
            guard mediaType == "application/x-www-form-urlencoded" else {
                throw .invalidRequest("The body must be application/x-www-form-urlencoded.")
            }
            guard let form = FormParameters(request.body) else {
                throw .invalidRequest("The body is malformed, or a parameter is given twice.")
            }
            let client = PresentedCredentials(authorization: request.values("Authorization"), form: form)
            return try server.withServer { server throws(ErrorAnswer) in try decide(&server, form, client) }
        }
    }

    private static func response(_ status: Int, _ outcome: () throws(ErrorAnswer) -> JSON) -> ServerResponse {
        do throws(ErrorAnswer) { return .json(status, try outcome()) } catch {
            var response = ServerResponse.json(error.status, error.json)
            if error.wantsChallenge { response.set("WWW-Authenticate", "Basic realm=\"playground\"") }
            return response
        }
    }
}

extension ServerResponse {
    /// Returns an answer that must not be cached, because it may hold a token (RFC 6749, section 5.1).
    static func json(_ status: Int, _ json: JSON) -> ServerResponse {
        var response = ServerResponse(status: status, type: "application/json", json.document)
        response.set("Cache-Control", "no-store")
        return response
    }
}
