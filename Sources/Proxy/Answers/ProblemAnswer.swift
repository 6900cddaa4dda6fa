import HTTPServer
import Reactor
import WireText

/// A `Problem` as an HTTP answer: `Proxy-Status` (RFC 9209) and a problem+json body (RFC 9457).
struct ProblemAnswer {
    let problem: Problem
    let body: [UInt8]

    init(_ problem: Problem, client: String?, upstream: String?, requestID: [UInt8]? = nil) {
        self.problem = problem
        body = Self.document(problem, client: client, upstream: upstream, requestID: requestID)
    }

    /// Appends the fields but those that frame the body.
    func appendFields(to output: inout ByteBuffer) {
        Self.appendProxyStatus(problem, to: &output)
        output.append("Content-Type: application/problem+json\r\nCache-Control: no-store\r\n")
        if problem.status == 407 {
            output.append("Proxy-Authenticate: Basic realm=\"heimdallr-proxy\", charset=\"UTF-8\"\r\n")
        }
        if let challenge = problem.challenge { output.append(line: "WWW-Authenticate: ", Array(challenge.utf8)) }
        if let retryAfter = problem.retryAfter {
            output.append("Retry-After: ")
            output.append(decimal: UInt64(max(1, (retryAfter.wholeMilliseconds + 999) / 1000)))
            output.append("\r\n")
        }
    }

    static func appendProxyStatus(_ problem: Problem, to output: inout ByteBuffer) {
        output.append("Proxy-Status: heimdallr-proxy; error=")
        output.append(Array(problem.error.utf8))
        output.append("\r\n")
    }

    /// The body: `application/problem+json` (RFC 9457, section 3).
    static func document(
        _ problem: Problem, client: String?, upstream: String?, requestID: [UInt8]? = nil
    ) -> [UInt8] {
        var members: [JSON.Member] = [
            .init("type", .string(problem.word.type)),
            .init("title", .string(problem.title)), .init("status", .number(problem.status)),
            .init("detail", .string(problem.detail)),
        ]
        if let client { members.append(.init("client", .string(client))) }
        if let upstream { members.append(.init("upstream", .string(upstream))) }
        if let requestID { members.append(.init("request_id", .string(String(decoding: requestID, as: UTF8.self)))) }
        if let loginURL = problem.loginURL { members.append(.init("login_url", .string(loginURL))) }
        var body: [UInt8] = []
        JSON.object(members).write(.compact, escaping: .required) { body.append($0) }
        body.append(ASCII.lf)
        return body
    }
}
