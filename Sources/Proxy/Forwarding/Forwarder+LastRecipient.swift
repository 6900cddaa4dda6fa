import HTTPMessage
import HTTPServer
import Reactor
import WireText

// TRACE and OPTIONS with Max-Forwards 0 (RFC 9110, section 7.6.2).
extension Forwarder {
    /// Answers as the last recipient: TRACE with its own head, without secrets (section 9.3.8), OPTIONS with 200.
    func reply() {
        let isTrace = connection.head.methodKind == .trace
        let keeps = keepsConnection(behindOwn: false)
        var body = ByteBuffer()
        if isTrace { appendHead(to: &body) }
        current.ledger.status = 200
        let before = connection.outputCount
        connection.write { output in
            output.append("HTTP/1.1 200 OK\r\n")
            if isTrace { output.append("Content-Type: message/http\r\n") }
            output.append("Cache-Control: no-store\r\nContent-Length: ")
            output.append(decimal: UInt64(body.count))
            if !keeps { output.append("\r\nConnection: close") }
            output.append("\r\n\r\n")
            output.append(body.bytes)
        }
        current.ledger.bytesSent = UInt64(connection.outputCount - before)
        finish(keeping: keeps)
    }

    /// Whether the client's connection stays behind an answer of the proxy.
    func keepsConnection(behindOwn closes: Bool) -> Bool {
        current.exchange.keepsConnection(
            behindOwn: closes, isRequestComplete: connection.isRequestComplete, mustClose: connection.mustClose)
    }

    private func appendHead(to body: inout ByteBuffer) {
        connection.withHead { head, bytes in
            body.append(bytes[head.method])
            body.append(" ")
            body.append(bytes[head.target])
            body.append(head.version == .http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n")
            for field in head.fields where !Self.isSecret(field, bytes) {
                body.append(field: bytes[field.name], bytes[field.value])
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
