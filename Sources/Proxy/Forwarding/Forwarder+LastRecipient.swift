import HTTPMessage
import HTTPServer
import Reactor
import WireText

// TRACE and OPTIONS with Max-Forwards 0 (RFC 9110, section 7.6.2).
extension Forwarder {
    /// Answers as the last recipient: TRACE with its own head, without secrets (section 9.3.8), OPTIONS with 200.
    func reply() {
        let isTrace = stream.request.head.methodKind == .trace
        let keeps = keepsConnection(behindOwn: false)
        var body = ByteBuffer()
        if isTrace { appendHead(to: &body) }
        current.ledger.status = 200
        answerOwn(200, Array("OK".utf8), [UInt8](copying: body.bytes), keeping: keeps) { output in
            if isTrace { output.append("Content-Type: message/http\r\n") }
            output.append("Cache-Control: no-store\r\n")
        }
    }

    /// Answers the request with a whole body, and ends it.
    func answerOwn(
        _ status: Int, _ reason: [UInt8], _ body: [UInt8], keeping: Bool, _ fields: (inout ByteBuffer) -> Void
    ) {
        let head = AnswerHead(status, keepsOpen: keeping, isOwn: true)
        var count = stream.answer(head, reason: reason.span) { output in
            fields(&output)
            output.append("Content-Length: ")
            output.append(decimal: UInt64(body.count))
            output.append("\r\n")
        }
        if !current.exchange.request.isHead {
            count += body.count
            guard stream.write(body.span, .all) != nil else { return leave() }
        }
        current.ledger.bytesSent = UInt64(count)
        finish(keeping: keeping)
    }

    /// Whether the client's connection stays behind an answer of the proxy.
    func keepsConnection(behindOwn closes: Bool) -> Bool {
        current.exchange.keepsConnection(
            behindOwn: closes, isRequestComplete: stream.progress.isRequestComplete, mustClose: stream.progress.mustClose)
    }

    private func appendHead(to body: inout ByteBuffer) {
        stream.request.with { head, bytes in
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
