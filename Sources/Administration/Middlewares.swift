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
        // Pages bring their own.
        for (name, value) in Self.fields where response.headers[name] == nil { response.headers[name] = value }
        return response
    }

    private static let fields: [(HTTPTypes.HTTPField.Name, String)] = {
        let texts = [
            ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ]
        return texts.compactMap { name, value in HTTPTypes.HTTPField.Name(name).map { ($0, value) } }
    }()
}

/// The gate in front of what not everybody may see or do.
struct AdmissionMiddleware: RouterMiddleware {
    typealias Context = AdminContext

    /// What stands behind it.
    enum Area: Sendable {
        /// Answers for programs and for the page's script, and every change: no other site may ask, and the token is
        /// wanted.
        case data
        /// What a link somewhere else may lead to: it is shown, but `AdminContext.isForeign` says how one came here.
        /// Without the token there is a form that asks for it.
        case page
        /// What the form that asks for the token needs itself.
        case open
        /// Where an authorization server sends the browser: from another site, and without the session's cookie. The
        /// attempt's own cookie stands in for both.
        case callback
    }

    let admission: Admission
    let gate: TokenGate
    let area: Area

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        do throws(Admission.Refusal) {
            let hosts = request.hosts
            let isNavigation = request.isNavigation
            if area == .callback, request.method == .get {
                try admission.checkHost(hosts, own: context.localAddress)
            } else if area == .page, isNavigation {
                try admission.checkHost(hosts, own: context.localAddress)
                context.isForeign = !request.sites.allSatisfy { $0 == "same-origin" || $0 == "none" }
            } else {
                try admission.check(
                    hosts: hosts, origins: request.headers[values: .origin], sites: request.sites,
                    own: context.localAddress)
            }
        } catch {
            return .plain(.forbidden, error.sentence + "\n")
        }
        if area == .data || area == .page,
            let refusal = await gate.refusal(request, context, asksInAForm: area == .page)
        {
            return refusal
        }
        return try await next(request, context)
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
