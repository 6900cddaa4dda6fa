import HTTPServer
import Reactor
import WireText

/// Writes a `Problem` as an HTTP answer: `Proxy-Status` (RFC 9209) and a problem+json body (RFC 9457).
enum ProblemAnswer {
    static func append(
        _ problem: Problem, to output: inout ByteBuffer, of connection: ServerConnection, client: String?,
        upstream: String?, requestID: [UInt8]? = nil,
        isHead: Bool, closes: Bool
    ) {
        let body = document(problem, client: client, upstream: upstream, requestID: requestID)
        output.append("HTTP/1.1 ")
        output.append(decimal: UInt64(problem.status))
        output.append(byte: UInt8(ascii: " "))
        output.append(Array(problem.phrase.utf8))
        output.append("\r\n")
        connection.appendDate(to: &output)
        output.append("Proxy-Status: heimdallr-proxy; error=")
        output.append(Array(problem.error.utf8))
        output.append("\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n")
        if problem.status == 407 {
            output.append("Proxy-Authenticate: Basic realm=\"heimdallr-proxy\", charset=\"UTF-8\"\r\n")
        }
        if let challenge = problem.challenge { output.append(line: "WWW-Authenticate: ", Array(challenge.utf8)) }
        if let retryAfter = problem.retryAfter {
            output.append("Retry-After: ")
            output.append(decimal: UInt64(max(1, (retryAfter.wholeMilliseconds + 999) / 1000)))
            output.append("\r\n")
        }
        output.append("Content-Length: ")
        output.append(decimal: UInt64(body.count))
        if closes { output.append("\r\nConnection: close") }
        output.append("\r\n\r\n")
        if !isHead { output.append(body) }
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
