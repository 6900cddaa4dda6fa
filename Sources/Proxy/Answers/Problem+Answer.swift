import HTTPServer
import Reactor
import WireText

// The problem as an HTTP answer: `Proxy-Status` (RFC 9209) and a problem+json body (RFC 9457).
extension Problem {
    /// Appends all fields except those that frame the body.
    /// - Parameter isRPC: whether the body is a JSON-RPC error.
    func appendFields(to output: inout ByteBuffer, isRPC: Bool = false) {
        output.append(
            isRPC || oauthError != nil
                ? "Content-Type: application/json\r\n" : "Content-Type: application/problem+json\r\n")
        if status == 407 {
            output.append("Proxy-Authenticate: Basic realm=\"heimdallr-proxy\", charset=\"UTF-8\"\r\n")
        }
        appendCommonFields(to: &output)
    }

    private func appendCommonFields(to output: inout ByteBuffer) {
        output.append("Proxy-Status: heimdallr-proxy; error=")
        output.append(Array(row.error.utf8))
        output.append("\r\nCache-Control: no-store\r\n")
        if let challenge { output.append(line: "WWW-Authenticate: ", Array(challenge.utf8)) }
        if condition == .tokenRequestMethod { output.append("Allow: POST\r\n") }
        if let retryAfter {
            output.append("Retry-After: ")
            output.append(decimal: UInt64(max(1, (retryAfter.wholeMilliseconds + 999) / 1000)))
            output.append("\r\n")
        }
    }

    /// `error` of the answer to a token request (RFC 6749, section 5.2); `nil` for answers to other requests.
    var oauthError: String? {
        switch condition {
        case .tokenRequestMalformed, .tokenRequestMethod, .tokenRequestTooLarge: "invalid_request"
        case .tokenRequestClient: "invalid_client"
        case .tokenRequestGrant: "invalid_grant"
        case .tokenRequestGrantType: "unsupported_grant_type"
        case .tokenRequestScope: "invalid_scope"
        default: nil
        }
    }

    /// Value of WWW-Authenticate (RFC 6750, section 3; for token requests RFC 6749, section 5.2).
    private var challenge: String? {
        switch condition {
        case .callerTokenNeeded: "Bearer"
        case .callerTokenRefused, .placeholderEnded, .placeholderForeign: "Bearer error=\"invalid_token\""
        case .tokenRequestClient: "Basic realm=\"heimdallr-proxy\""
        default: nil
        }
    }

    // MARK: For gRPC callers

    /// HTTP status of all answers to gRPC calls. Their result is in `grpc-status`.
    static let statusOfCalls = 200

    /// Appends the fields of the answer to a gRPC call. Without a body, they also serve as trailers ("Trailers-Only").
    func appendCallFields(to output: inout ByteBuffer) {
        output.append("Content-Type: application/grpc\r\ngrpc-status: ")
        output.append(decimal: UInt64(row.grpcStatus.code))
        output.append("\r\ngrpc-message: ")
        output.append(Array(PercentEncoding.grpcMessage.encode(message).utf8))
        output.append("\r\n")
        appendCommonFields(to: &output)
    }

    /// Title and detail, followed by the sign-in URL if there is one.
    var message: String {
        let text = "\(row.title). \(detail)"
        guard let loginURL, !text.contains(loginURL) else { return text }
        return "\(text) \(loginURL)"
    }

    /// Returns the body: `application/problem+json` (RFC 9457, section 3). Some libraries show only its `message`.
    /// - Parameter rpc: `id` of the JSON-RPC request whose error holds the document; `nil` for any other request.
    func document(client: String?, upstream: String?, requestID: [UInt8]? = nil, rpc: JSON? = nil) -> [UInt8] {
        if let oauthError {
            return Self.text([.init("error", .string(oauthError)), .init("error_description", .string(detail))])
        }
        var members: [JSON.Member] = [
            .init("type", .string(row.type)),
            .init("title", .string(row.title)), .init("status", .number(status)),
            .init("detail", .string(detail)), .init("message", .string(message)),
        ]
        if let client { members.append(.init("client", .string(client))) }
        if let upstream { members.append(.init("upstream", .string(upstream))) }
        if let requestID { members.append(.init("request_id", .string(String(decoding: requestID, as: UTF8.self)))) }
        if let loginURL { members.append(.init("login_url", .string(loginURL))) }
        if let rpc {
            let error = [
                JSON.Member("code", .number(JSONRPC.errorCode)), .init("message", .string(message)),
                .init("data", .object(members)),
            ]
            members = [.init("jsonrpc", .string("2.0")), .init("id", rpc), .init("error", .object(error))]
        }
        return Self.text(members)
    }

    private static func text(_ members: [JSON.Member]) -> [UInt8] {
        var body: [UInt8] = []
        JSON.object(members).write(.compact, escaping: .required) { body.append($0) }
        body.append(ASCII.lf)
        return body
    }
}
