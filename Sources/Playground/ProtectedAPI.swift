import HTTPTypes
import Hummingbird
import NIOCore

/// An API that wants a bearer token (RFC 6750) on every path, and tells what it received.
struct ProtectedAPI: HTTPResponder {
    typealias Context = BasicRequestContext

    let office: TokenOffice

    func respond(to request: Request, context: Context) async throws -> Response {
        // Taken in whole, but never kept: whatever the size, memory stays as it is.
        var bodyBytes = 0
        for try await chunk in request.body {
            bodyBytes += chunk.readableBytes
        }
        let response = answer(to: request, bodyBytes: bodyBytes)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func answer(to request: Request, bodyBytes: Int) -> Response {
        let fields = request.headers[values: .authorization]
        guard fields.contains(where: { Self.bearerToken($0) != nil }) else {
            // No error code for a request that tried nothing (RFC 6750, section 3.1).
            return refusal(
                challenge: "Bearer realm=\"playground\"", error: "unauthorized",
                sentence: "This API wants an access token, and the request brought none.")
        }
        guard fields.count == 1, let token = Self.bearerToken(fields[0]),
            let grant = office.withServer({ $0.grant(forAccessToken: token, now: .now) })
        else {
            return refusal(
                challenge: "Bearer realm=\"playground\", error=\"invalid_token\"", error: "invalid_token",
                sentence: "The access token is unknown, expired or revoked.")
        }
        let report = RequestReport(request: request, bodyBytes: bodyBytes, token: token, scope: grant.scope)
        return Self.response(.ok, report.json)
    }

    private func refusal(challenge: String, error: String, sentence: String) -> Response {
        var response = Self.response(
            .unauthorized, .object([("error", .string(error)), ("message", .string(sentence))]))
        response.headers[.wwwAuthenticate] = challenge
        return response
    }

    private static func response(_ status: HTTPResponse.Status, _ json: JSON) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: json.document)))
    }

    static func bearerToken(_ field: String) -> String? {
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }
}
