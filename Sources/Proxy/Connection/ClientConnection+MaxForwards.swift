import HTTPMessage
import Reactor

// TRACE and OPTIONS count the proxies they may pass (RFC 9110, section 7.6.2).
extension ClientConnection {
    /// Counts this proxy, and answers here when the count has run out.
    /// - Returns: whether it did.
    func countForward() throws(Problem) -> Bool {
        guard head.methodKind == .trace || head.methodKind == .options, let index = head.index(of: .maxForwards) else {
            return false
        }
        guard let count = headBytes.withBytes({ Self.number($0[head.fields[index].value]) }) else {
            throw .badMaxForwards
        }
        guard count == 0 else {
            maxForwards = count - 1
            return false
        }
        answerHere()
        return true
    }

    /// `nil` for what is not a number; a huge one is as good as the largest.
    private static func number(_ digits: Span<UInt8>) -> UInt64? {
        guard !digits.isEmpty else { return nil }
        var number: UInt64 = 0
        for index in digits.indices {
            let digit = digits[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            number = min(number * 10 + UInt64(digit), 1 << 32)
        }
        return number
    }

    /// Being the last recipient: TRACE gets its own head back but for what may be secret (section 9.3.8), OPTIONS that
    /// all is well.
    private func answerHere() {
        let isTrace = head.methodKind == .trace
        let closes = !exchange.isRequestComplete || !exchange.clientKeepsAlive || exchange.isHTTP10 || shard.isDraining
        var body = ByteBuffer()
        if isTrace { appendHead(to: &body) }
        status = 200
        let before = output.count
        output.append("HTTP/1.1 200 OK\r\n")
        if isTrace { output.append("Content-Type: message/http\r\n") }
        output.append("Cache-Control: no-store\r\nContent-Length: ")
        output.append(decimal: UInt64(body.count))
        if closes { output.append("\r\nConnection: close") }
        output.append("\r\n\r\n")
        output.append(body.bytes)
        bytesSent = UInt64(output.count - before)
        finishRequest(keeping: !closes)
    }

    private func appendHead(to body: inout ByteBuffer) {
        headBytes.withBytes { bytes in
            body.append(bytes[head.method])
            body.append(" ")
            body.append(bytes[head.target])
            body.append(exchange.isHTTP10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n")
            for field in head.fields where !Self.isSecret(field, bytes) {
                body.append(bytes[field.name])
                body.append(": ")
                body.append(bytes[field.value])
                body.append("\r\n")
            }
            body.append("\r\n")
        }
    }

    private static func isSecret(_ field: Field, _ bytes: Span<UInt8>) -> Bool {
        switch field.known {
        case .authorization, .proxyAuthorization: true
        default: bytes[field.name].equalsIgnoringCase(cookie)
        }
    }
    private static let cookie = Array("cookie".utf8)
}
