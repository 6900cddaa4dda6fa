import HTTP2
import HTTPMessage
import Reactor
import WireText

/// The head of an HTTP/2 request, written down as HTTP/1.1: absolute form, Host from `:authority`, one Cookie field. So the
/// strict parser of HTTP/1.1 judges both versions (RFC 9113, section 8.3).
enum HTTP2RequestText {
    private struct Control {
        var method: [UInt8] = []
        var scheme: [UInt8] = []
        var authority: [UInt8] = []
        var path: [UInt8] = []
        var host: [UInt8]?
        var cookie: [UInt8] = []
    }

    /// Appends the text of a head to `text`.
    /// - Parameters:
    ///   - hasBody: a body follows. Without Content-Length, a line tells the parser that its length is not known. That line is
    ///     never passed on.
    /// - Returns: the number of its field lines. More lines in the text are a smuggled one.
    /// - Throws: 400 for a head that HTTP/1.1's form can't show, 431, or 501 for CONNECT.
    static func write(
        _ block: HTTP2Block, of session: HTTP2Session, hasBody: Bool, to text: inout ByteBuffer
    ) throws(MessageError) -> Int {
        var control = Control()
        var fields = ByteBuffer()
        var (count, hasLength) = (1, false)
        try session.received.forEach(block.fields) { name, value throws(MessageError) in
            if try take(name, value, &control) { return }
            if name.equalsIgnoringCase(contentLength) { hasLength = true }
            fields.append(field: name, value)
            count += 1
        }
        if control.method == connect {
            throw MessageError(status: 501, detail: "CONNECT is served over HTTP/1.1 only.")
        }
        if control.authority.isEmpty {
            control.authority = control.host ?? []
        } else if let host = control.host, !control.authority.span.equalsIgnoringCase(host.map(ASCII.lowercased)) {
            throw MessageError(status: 400, detail: "The Host field differs from :authority.")
        }
        append(control, to: &text)
        fields.withBytes { text.append($0) }
        if !control.cookie.isEmpty {
            text.append(line: "Cookie: ", control.cookie)
            count += 1
        }
        if hasBody, !hasLength {
            text.append("Transfer-Encoding: chunked\r\n")
            count += 1
        }
        text.append("\r\n")
        if block.isTooLarge { throw MessageError(status: 431, detail: "The head is too large.") }
        return count
    }

    private static func append(_ control: Control, to text: inout ByteBuffer) {
        text.append(control.method)
        text.append(" ")
        text.append(control.scheme)
        text.append("://")
        text.append(control.authority)
        // OPTIONS of a whole server has no path in absolute form (RFC 9112, section 3.2.4).
        if control.path != asterisk { text.append(control.path) }
        text.append(" HTTP/1.1\r\n")
        text.append(line: "Host: ", control.authority)
    }

    /// - Returns: whether the field is no line of its own.
    private static func take(
        _ name: Span<UInt8>, _ value: Span<UInt8>, _ control: inout Control
    ) throws(MessageError) -> Bool {
        if name.equalsIgnoringCase(cookie) {
            // Sent in pieces, for compression (RFC 9113, section 8.2.3).
            if !control.cookie.isEmpty { control.cookie += [ASCII.semicolon, ASCII.space] }
            control.cookie.append(copying: value)
            return true
        }
        if name.equalsIgnoringCase(host) {
            control.host = [UInt8](copying: value)
            return true
        }
        guard name.count > 0, name[0] == ASCII.colon else { return false }
        if name.elementsEqual(method) {
            control.method = [UInt8](copying: value)
        } else if name.elementsEqual(scheme) {
            control.scheme = [UInt8](copying: value)
        } else if name.elementsEqual(authority) {
            control.authority = [UInt8](copying: value)
        } else if name.elementsEqual(path) {
            control.path = [UInt8](copying: value)
        } else {
            throw MessageError(status: 400, detail: "A pseudo-header field is unknown.")
        }
        return true
    }

    private static let connect = Array("CONNECT".utf8)
    private static let asterisk = Array("*".utf8)
    private static let method = Array(":method".utf8)
    private static let scheme = Array(":scheme".utf8)
    private static let authority = Array(":authority".utf8)
    private static let path = Array(":path".utf8)
    private static let host = Array("host".utf8)
    private static let cookie = Array("cookie".utf8)
    private static let contentLength = Array("content-length".utf8)
}
