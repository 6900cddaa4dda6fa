import HTTP2
import HTTPMessage
import HTTPServer
import Reactor
import WireText

/// The answer on one stream. The strict parsers of HTTP/1.1 read its heads and trailers, so the same rules hold. Not
/// copyable, so lending the head costs nothing.
struct HTTP2Answer: ~Copyable {
    private(set) var head = ResponseHead(reserving: 512, fields: 16)
    private(set) var isHeadComplete = false
    private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []
    private var interim = 0
    private let requestWasHead: Bool
    private static let maxTrailers = 32
    private static let maxTrailerBytes = 8 << 10

    init(requestWasHead: Bool) { self.requestWasHead = requestWasHead }

    @inline(__always) borrowing func withHead<Result>(_ read: (borrowing ResponseHead) -> Result) -> Result {
        read(head)
    }

    /// Whether an interim or final head has arrived.
    var hasBegun: Bool { isHeadComplete || interim > 0 }

    /// Reads the head of an interim or final answer.
    mutating func read(_ fields: borrowing HTTP2FieldList, _ block: HTTP2Block) throws(MessageError) {
        guard !block.isTooLarge else {
            throw MessageError(status: 502, detail: "The head is larger than 256 KiB, or has more than 1000 fields.")
        }
        head.reset(requestWasHead: requestWasHead)
        var line = ByteBuffer()
        var isFirst = true
        try fields.forEach(block.fields) { name, value throws(MessageError) in
            line.removeAll()
            if isFirst {
                line.append("HTTP/2 ")
                line.append(value)
                line.append(" \r\n")
            } else {
                line.append(field: name, value)
            }
            isFirst = false
            _ = try head.append(line: line.bytes, allowHTTP2: true)
        }
        // END_STREAM says that no body follows. The parser of HTTP/1.1 needs Content-Length instead.
        if block.endsStream, !requestWasHead, head.status >= 200, head.status != 204, head.status != 304,
            head.index(of: .contentLength) == nil
        {
            _ = try head.append(line: Self.noContent.span, allowHTTP2: true)
        }
        _ = try head.append(line: Self.blank.span, allowHTTP2: true)
        guard head.status != 101 else { throw MessageError(status: 502, detail: "HTTP/2 has no 101.") }
        guard head.isInterim else { return isHeadComplete = true }
        interim += 1
        guard interim <= HTTP1Exchange.maxInterim else { throw HTTP1Exchange.manyInterim }
    }

    /// Releases the memory of a head that has been passed on.
    mutating func dropHead() { head = ResponseHead(reserving: 0, fields: 0) }

    /// Reads the trailers. Keeps trailers that may be forwarded.
    mutating func read(trailers fields: borrowing HTTP2FieldList, _ block: HTTP2Block) throws(MessageError) {
        guard isHeadComplete else { throw MessageError(status: 502, detail: "Trailers came before a head.") }
        guard !block.isTooLarge else { throw Self.largeTrailers }
        var line = ByteBuffer()
        var (count, bytes) = (0, 0)
        try fields.forEach(block.fields) { name, value throws(MessageError) in
            line.removeAll()
            line.append(field: name, value)
            count += 1
            bytes += line.count
            guard count <= Self.maxTrailers, bytes <= Self.maxTrailerBytes else { throw Self.largeTrailers }
            guard let (name, value) = try TrailerRules.field(in: line.bytes) else { return }
            trailers.append(([UInt8](copying: line.bytes[name]), [UInt8](copying: line.bytes[value])))
        }
    }

    private static let largeTrailers = MessageError(
        status: 502, detail: "The trailers are more than \(maxTrailers), or larger than \(maxTrailerBytes >> 10) KiB.")
    private static let noContent = Array("content-length: 0\r\n".utf8)
    private static let blank = Array("\r\n".utf8)
}
