import HTTPTypes
import Heimdallr
import Hummingbird
import Logging

/// Every answer of the administration, errors too: kept by nobody, framed by nobody, taken for nothing else.
struct AnswerMiddleware: RouterMiddleware {
    typealias Context = AdminContext

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        do {
            response = try await next(request, context)
        } catch let error as any HTTPResponseError where error.status == .notFound {
            response = .plain(.notFound, "There is nothing here.\n")
        } catch let error as any HTTPResponseError {
            response = .plain(error.status, error.status.reasonPhrase + "\n")
        }
        response.headers[.cacheControl] = "no-store"
        response.headers[.xContentTypeOptions] = "nosniff"
        for (name, value) in Self.fields { response.headers[name] = value }
        return response
    }

    private static let fields: [(HTTPTypes.HTTPField.Name, String)] = {
        let texts = [
            ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
        return texts.compactMap { name, value in HTTPTypes.HTTPField.Name(name).map { ($0, value) } }
    }()
}

/// The gate in front of what not everybody may read.
struct AdmissionMiddleware: RouterMiddleware {
    typealias Context = AdminContext

    let admission: Admission
    /// Read anew for each request, so that it can be rotated.
    let token: (any SecretProvider)?

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        do throws(Admission.Refusal) {
            try admission.check(
                hosts: hosts(of: request), origins: request.headers[values: .origin],
                sites: Self.secFetchSite.map { request.headers[values: $0] } ?? [], own: context.localAddress)
        } catch {
            return .plain(.forbidden, error.sentence + "\n")
        }
        guard let token else { return try await next(request, context) }
        let expected: Secret
        do {
            expected = try await token.secret()
        } catch {
            let reason = (error as? SecretProviderError)?.description ?? "it can't be read"
            context.logger.error("admin.token can't be had", metadata: ["reason": "\(reason)"])
            return .plain(.internalServerError, "admin.token can't be had; the log says why.\n")
        }
        guard !expected.isEmpty, Self.bearerToken(of: request) == expected else {
            var response = Response.plain(
                .unauthorized, "Send `Authorization: Bearer …` with the value of admin.token.\n")
            response.headers[.wwwAuthenticate] = "Bearer realm=\"heimdallr-proxy\""
            return response
        }
        return try await next(request, context)
    }

    /// Host comes as the authority; a second one would stay a field.
    private func hosts(of request: Request) -> [String] {
        let fields = Self.host.map { request.headers[values: $0] } ?? []
        return (request.head.authority.map { [$0] } ?? []) + fields
    }

    private static let secFetchSite = HTTPTypes.HTTPField.Name("Sec-Fetch-Site")
    private static let host = HTTPTypes.HTTPField.Name("Host")

    private static func bearerToken(of request: Request) -> Secret? {
        let fields = request.headers[values: .authorization]
        guard fields.count == 1 else { return nil }
        let parts = fields[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return Secret(String(parts[1]))
    }
}

extension Response {
    static func plain(_ status: HTTPResponse.Status, _ text: String) -> Response {
        content(status, "text/plain; charset=utf-8", text)
    }

    static func content(_ status: HTTPResponse.Status, _ type: String, _ text: String) -> Response {
        Response(
            status: status, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
