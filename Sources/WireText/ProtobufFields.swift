/// The fields of a message of Protocol Buffers, in order (protobuf.dev/programming-guides/encoding). Copies no content.
public struct ProtobufFields: ~Escapable {
    public enum Value {
        case number(UInt64)
        /// A text, bytes or an inner message, by its place.
        case bytes(Range<Int>)
        case other
    }

    private let bytes: Span<UInt8>
    private var rest: Range<Int>
    /// Whether `next` has ended at a malformed field.
    public private(set) var isMalformed = false

    /// - Parameter range: place of the message; `nil`: all bytes.
    @_lifetime(copy bytes)
    public init(_ bytes: Span<UInt8>, in range: Range<Int>? = nil) {
        self.bytes = bytes
        rest = range ?? 0..<bytes.count
    }

    public mutating func next() -> (number: UInt64, value: Value)? {
        guard !isMalformed, !rest.isEmpty else { return nil }
        guard let tag = varint(), tag >> 3 > 0, let value = value(ofType: tag & 7) else {
            isMalformed = true
            return nil
        }
        return (tag >> 3, value)
    }

    private mutating func value(ofType type: UInt64) -> Value? {
        switch type {
        case 0: varint().map { .number($0) }
        case 1: take(8) == nil ? nil : .other
        case 2: varint().flatMap { take($0) }.map { .bytes($0) }
        case 5: take(4) == nil ? nil : .other
        default: nil
        }
    }

    private mutating func take(_ count: UInt64) -> Range<Int>? {
        guard count <= UInt64(rest.count) else { return nil }
        let taken = rest.prefix(Int(count))
        rest = rest.dropFirst(Int(count))
        return taken
    }

    private mutating func varint() -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let position = rest.first else { return nil }
            rest = rest.dropFirst()
            let byte = bytes[position]
            // Only one bit of the tenth byte fits into 64 bits.
            guard shift < 63 || byte <= 1 else { return nil }
            number |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }
}
