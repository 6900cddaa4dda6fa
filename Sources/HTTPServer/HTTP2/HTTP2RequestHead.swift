import HTTP2
import HTTPMessage
import Reactor
import WireText

/// Converts a request's head to HTTP/1.1, so that `RequestHead` applies the same rules to both versions.
struct HTTP2RequestHead: ~Copyable {
    private static let methodField = Array(":method".utf8)
    private static let schemeField = Array(":scheme".utf8)
    private static let authorityField = Array(":authority".utf8)
    private static let pathField = Array(":path".utf8)
    private static let host = Array("host".utf8)
    private static let cookie = Array("cookie".utf8)
    private static let contentLength = Array("content-length".utf8)

    private var method: [UInt8] = []
    private var scheme: [UInt8] = []
    private var authority: [UInt8]?
    private var path: [UInt8] = []
    private var cookies: [UInt8] = []
    private var lines = ByteBuffer()
    private var hasLength = false

    /// - Throws: for a head that HTTP/1.1 can't express, or that is ambiguous.
    init(_ list: borrowing HTTP2FieldList, _ fields: Range<Int>) throws(MessageError) {
        var head = Self()
        try list.forEach(fields) { name, value throws(MessageError) in try head.take(name, value) }
        self = head
    }

    private init() {}

    private mutating func take(_ name: Span<UInt8>, _ value: Span<UInt8>) throws(MessageError) {
        // A line end would begin another field of HTTP/1.1. libnghttp2 refuses such fields too.
        guard ASCII.endOfFieldValue(value, 0) == value.count, ASCII.endOfFieldValue(name, 0) == name.count else {
            throw MessageError(detail: "A field holds a control character.")
        }
        if name.count > 0, name[0] == ASCII.colon {
            takePseudo(name, [UInt8](copying: value))
        } else if name.equalsIgnoringCase(Self.host) {
            let host = [UInt8](copying: value)
            guard authority == nil || authority == host else {
                throw MessageError(detail: "The fields ':authority' and 'host' differ.")
            }
            authority = host
        } else if name.equalsIgnoringCase(Self.cookie) {
            // Several Cookie fields become one (RFC 9113, section 8.2.3).
            if !cookies.isEmpty { cookies += Array("; ".utf8) }
            cookies += [UInt8](copying: value)
        } else {
            if name.equalsIgnoringCase(Self.contentLength) { hasLength = true }
            lines.append(field: name, value)
        }
    }

    /// Takes a pseudo-header field. libnghttp2 refuses unknown and repeated ones.
    private mutating func takePseudo(_ name: Span<UInt8>, _ value: [UInt8]) {
        if name.equalsIgnoringCase(Self.methodField) {
            method = value
        } else if name.equalsIgnoringCase(Self.schemeField) {
            scheme = value
        } else if name.equalsIgnoringCase(Self.authorityField) {
            authority = value
        } else if name.equalsIgnoringCase(Self.pathField) {
            path = value
        }
    }

    /// Reads trailers by the rules for chunked bodies.
    /// - Returns: the trailers that may be forwarded.
    static func trailers(
        _ list: borrowing HTTP2FieldList, _ fields: Range<Int>
    ) throws(MessageError) -> [(name: [UInt8], value: [UInt8])] {
        var section = ByteBuffer()
        section.append("0\r\n")
        list.forEach(fields) { name, value in section.append(field: name, value) }
        section.append("\r\n")
        var decoder = ChunkedDecoder()
        guard case .end = try decoder.next(section.bytes, from: 0) else {
            throw MessageError(detail: "The trailers are malformed.")
        }
        return decoder.trailers
    }

    /// Writes the head in HTTP/1.1.
    /// - Parameters:
    ///   - isSecure: whether the connection is TLS.
    ///   - isBodiless: whether the request has no body.
    /// - Throws: for a method or scheme that is not served.
    borrowing func write(to output: inout ByteBuffer, isSecure: Bool, isBodiless: Bool) throws(MessageError) {
        guard method != Array("CONNECT".utf8) else {
            throw MessageError(
                status: 501,
                detail: "CONNECT is not served over HTTP/2. Send it over HTTP/1.1; HTTP/2 may follow inside it.")
        }
        let isHTTPS = scheme == Array("https".utf8)
        guard isHTTPS || scheme == Array("http".utf8) else {
            throw MessageError(detail: "The field ':scheme' is neither http nor https.")
        }
        let authority = authority ?? []
        // Without growing step by step to twice the size.
        output.reserve(lines.count + cookies.count + path.count + method.count + 2 * authority.count + 96)
        output.append(method)
        output.append(" ")
        // An absolute target keeps a scheme that differs from the connection's.
        if isHTTPS != isSecure, path != [ASCII.asterisk] {
            output.append(scheme)
            output.append("://")
            output.append(authority)
        }
        output.append(path)
        output.append(line: " HTTP/1.1\r\nHost: ", authority)
        output.append(lines.bytes)
        if !cookies.isEmpty { output.append(line: "cookie: ", cookies) }
        if !isBodiless, !hasLength { output.append("transfer-encoding: chunked\r\n") }
        output.append("\r\n")
    }
}
