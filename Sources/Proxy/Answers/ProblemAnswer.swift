import HTTPServer
import Reactor

/// Writes a `Problem` as an HTTP answer: `Proxy-Status` (RFC 9209) and a problem+json body (RFC 9457).
enum ProblemAnswer {
    static func append(
        _ problem: Problem, to output: inout ByteBuffer, client: String?, upstream: String?, requestID: [UInt8]? = nil,
        isHead: Bool, closes: Bool
    ) {
        var body: [UInt8] = []
        JSON.open(&body)
        JSON.member("type", "urn:heimdallr-proxy:problem:\(problem.slug)", &body)
        JSON.member("title", problem.title, &body)
        JSON.member("status", problem.status, &body)
        JSON.member("detail", problem.detail, &body)
        if let client { JSON.member("client", client, &body) }
        if let upstream { JSON.member("upstream", upstream, &body) }
        // As in the access log, so that who reads the one finds the other.
        if let requestID { JSON.member("request_id", String(decoding: requestID, as: UTF8.self), &body) }
        if let loginURL = problem.loginURL { JSON.member("login_url", loginURL, &body) }
        JSON.close(&body)

        output.append("HTTP/1.1 ")
        output.append(decimal: UInt64(problem.status))
        output.append(byte: UInt8(ascii: " "))
        output.append(ReasonPhrase.of(problem.status))
        output.append("\r\nProxy-Status: heimdallr-proxy; error=")
        output.append(Array(problem.error.utf8))
        output.append("\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n")
        if problem.status == 407 {
            output.append("Proxy-Authenticate: Basic realm=\"heimdallr-proxy\", charset=\"UTF-8\"\r\n")
        }
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
}

/// As much of JSON as a problem needs.
private enum JSON {
    static func open(_ body: inout [UInt8]) { body += Array("{".utf8) }

    static func close(_ body: inout [UInt8]) { body += Array("}\n".utf8) }

    static func member(_ name: String, _ value: Int, _ body: inout [UInt8]) {
        key(name, &body)
        body += Array(String(value).utf8)
    }

    static func member(_ name: String, _ value: String, _ body: inout [UInt8]) {
        key(name, &body)
        string(value, &body)
    }

    private static func key(_ name: String, _ body: inout [UInt8]) {
        if body.count > 1 { body.append(UInt8(ascii: ",")) }
        string(name, &body)
        body.append(UInt8(ascii: ":"))
    }

    private static func string(_ value: String, _ body: inout [UInt8]) {
        body.append(UInt8(ascii: "\""))
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                body.append(UInt8(ascii: "\\"))
                body.append(UInt8(scalar.value))
            case "\u{0}"..."\u{1f}": body += Array("\\u00".utf8) + hex(UInt8(scalar.value))
            default: body += Array(String(scalar).utf8)
            }
        }
        body.append(UInt8(ascii: "\""))
    }

    private static func hex(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
