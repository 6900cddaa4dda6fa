import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// The authorization server, shared by the endpoints and the API that asks it about tokens.
final class TokenOffice: Sendable {
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

    static func router(office: TokenOffice) -> Router<BasicRequestContext> {
        let router = Router()
        router.post("token") { request, _ in
            try await answer(request) { form, client in
                switch office.withServer({ $0.token(form: form, client: client, now: .now) }) {
                case .success(let token): response(.ok, token.json)
                case .failure(let error): response(error)
                }
            }
        }
        router.post("revoke") { request, _ in
            try await answer(request) { form, client in
                office.withServer { $0.revoke(form: form, client: client, now: .now) }.map(response)
                    ?? response(.ok, .object([]))
            }
        }
        router.post("device_authorization") { request, _ in
            let issuer = issuer(of: request)
            return try await answer(request) { form, client in
                switch office.withServer({ $0.beginDevice(form: form, client: client, now: .now) }) {
                case .success(let codes): response(.ok, codes.json(issuer: issuer))
                case .failure(let error): response(error)
                }
            }
        }
        for name in ["oauth-authorization-server", "openid-configuration"] {
            router.get(".well-known/\(name)") { request, _ in
                response(.ok, ServerMetadata.json(issuer: issuer(of: request)))
            }
        }
        for path in ["authorize", "device"] {
            router.get("\(path)") { request, _ in page(request, query(of: request), office) }
            router.post("\(path)") { request, _ in
                let body = try await request.body.collect(upTo: maxBodyBytes)
                return page(request, FormParameters(Array(body.readableBytesView)), office)
            }
        }
        return router
    }

    /// A person's part.
    private static func page(_ request: Request, _ parameters: FormParameters?, _ office: TokenOffice) -> Response {
        let asked = SignInRequest(
            method: request.method.rawValue, path: request.uri.path, parameters: parameters,
            issuer: issuer(of: request))
        let answer = office.withServer { SignInPages.answer(asked, &$0, now: .now) }
        var response = Response(
            status: HTTPResponse.Status(code: answer.status),
            headers: [.contentType: answer.type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer.body)))
        if let location = answer.location { response.headers[.location] = location }
        response.headers[.contentSecurityPolicy] =
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
        return response
    }

    private static func query(of request: Request) -> FormParameters? {
        FormParameters(Array((request.uri.query ?? "").utf8))
    }

    private static func issuer(of request: Request) -> String { "http://\(request.head.authority ?? "127.0.0.1")" }

    private static func answer(
        _ request: Request, _ decide: (FormParameters, ClientAuthentication) -> Response
    ) async throws -> Response {
        let body = try await request.body.collect(upTo: maxBodyBytes)
        let mediaType = request.headers[.contentType]?.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard mediaType == "application/x-www-form-urlencoded" else {
            return response(.invalidRequest("The body must be application/x-www-form-urlencoded."))
        }
        guard let form = FormParameters(Array(body.readableBytesView)) else {
            return response(.invalidRequest("The body is malformed, or a parameter is given twice."))
        }
        let authorization = request.headers[values: .authorization]
        return decide(form, ClientAuthentication(authorization: authorization, form: form))
    }

    private static func response(_ error: OAuthError) -> Response {
        var response = response(HTTPResponse.Status(code: error.status), error.json)
        if error == .invalidClient(basic: true) {
            response.headers[.wwwAuthenticate] = "Basic realm=\"playground\""
        }
        return response
    }

    /// Every answer here may hold a token, so none may be cached (RFC 6749, section 5.1).
    private static func response(_ status: HTTPResponse.Status, _ json: JSON) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: json.document)))
    }
}
