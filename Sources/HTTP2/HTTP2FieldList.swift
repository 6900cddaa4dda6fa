import Reactor
import WireText

/// Fields of messages: all bytes in one buffer, and each field's positions. libnghttp2 makes names lower-case.
public struct HTTP2FieldList: ~Copyable {
    struct Field {
        let name: Range<Int>
        let value: Range<Int>
    }

    private(set) var bytes: ByteBuffer
    private(set) var fields: [Field] = []

    /// - Parameter isSecret: whether to wipe the bytes.
    public init(isSecret: Bool = false) { bytes = ByteBuffer(isSecret: isSecret) }

    public var count: Int { fields.count }

    public mutating func removeAll() {
        bytes.removeAll()
        fields.removeAll(keepingCapacity: true)
    }

    mutating func removeFirst(_ count: Int) {
        guard count < fields.count else { return removeAll() }
        let start = fields[count].name.lowerBound
        bytes.consume(start)
        fields = fields[count...].map { field in
            Field(
                name: (field.name.lowerBound - start)..<(field.name.upperBound - start),
                value: (field.value.lowerBound - start)..<(field.value.upperBound - start))
        }
    }

    /// Frees memory that a peer's large lists took.
    mutating func trim() {
        guard bytes.capacity > Self.kept || fields.capacity > Self.kept / 64 else { return }
        bytes.release()
        fields = []
    }

    private static let kept = 8 << 10

    public mutating func append(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        let start = bytes.count
        bytes.append(name)
        append(value, behind: start)
    }

    public mutating func append(_ name: StaticString, _ value: Span<UInt8>) {
        let start = bytes.count
        bytes.append(name)
        append(value, behind: start)
    }

    /// - Parameter start: offset of the name, which is the last part of `bytes`.
    private mutating func append(_ value: Span<UInt8>, behind start: Int) {
        let middle = bytes.count
        bytes.append(value)
        add(Field(name: start..<middle, value: middle..<bytes.count))
    }

    private mutating func add(_ field: Field) {
        if fields.isEmpty { fields.reserveCapacity(16) }
        fields.append(field)
    }

    /// Appends the HTTP/1.1 field lines (`name: value` and CRLF) that `write` makes. Leaves out fields that describe an
    /// HTTP/1.1 connection (RFC 9113, section 8.2.2).
    public mutating func append(lines write: (inout ByteBuffer) -> Void) {
        var position = bytes.count
        write(&bytes)
        let end = bytes.count
        while position < end {
            let (field, next) = Self.line(bytes.bytes, from: position)
            if let field, !Self.isOfConnection(bytes.bytes, field) { add(field) }
            position = next
        }
    }

    /// - Returns: the line's field, `nil` for a line without a name; and the position of the next line.
    private static func line(_ bytes: Span<UInt8>, from start: Int) -> (Field?, next: Int) {
        var end = start
        while end < bytes.count, bytes[end] != ASCII.cr { end += 1 }
        var colon = start
        while colon < end, bytes[colon] != ASCII.colon { colon += 1 }
        let next = min(end + 2, bytes.count)
        guard colon > start, colon < end else { return (nil, next) }
        var valueStart = colon + 1
        var valueEnd = end
        while valueStart < valueEnd, ASCII.isBlank(bytes[valueStart]) { valueStart += 1 }
        while valueEnd > valueStart, ASCII.isBlank(bytes[valueEnd - 1]) { valueEnd -= 1 }
        return (Field(name: start..<colon, value: valueStart..<valueEnd), next)
    }

    private static func isOfConnection(_ bytes: Span<UInt8>, _ field: Field) -> Bool {
        let name = bytes.extracting(field.name)
        switch name.count {
        case 2: return equals(name, "te") && !equals(bytes.extracting(field.value), "trailers")
        case 7: return equals(name, "upgrade")
        case 10: return equals(name, "connection") || equals(name, "keep-alive")
        case 16: return equals(name, "proxy-connection")
        case 17: return equals(name, "transfer-encoding")
        default: return false
        }
    }

    private static func equals(_ bytes: Span<UInt8>, _ word: StaticString) -> Bool {
        word.withUTF8Buffer { word in
            guard word.count == bytes.count else { return false }
            for index in 0..<word.count where unsafe ASCII.lowercased(bytes[index]) != word[index] { return false }
            return true
        }
    }

    /// Lends the fields of `range`, in order.
    public borrowing func forEach<Failure: Error>(
        _ range: Range<Int>? = nil, _ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        let bytes = bytes.bytes
        for index in range ?? 0..<fields.count {
            let field = fields[index]
            try body(bytes.extracting(field.name), bytes.extracting(field.value))
        }
    }
}
