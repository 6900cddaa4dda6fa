/// Writes Protocol Buffers messages (protobuf.dev/programming-guides/encoding). Leaves out zeros and empty values, as
/// in proto3. `fixed64` and `fixed32` also write zeros.
public struct ProtobufWriter {
    public private(set) var bytes: [UInt8] = []

    public init() {}

    private enum WireType: UInt64 { case varint = 0, fixed64 = 1, length = 2, fixed32 = 5 }

    private mutating func tag(_ field: Int, _ type: WireType) { varint(UInt64(field) << 3 | type.rawValue) }

    private mutating func varint(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func content(_ field: Int, _ content: some Collection<UInt8>) {
        tag(field, .length)
        varint(UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    /// Writes a `bool`, `enum` or `int64`. A negative number takes ten bytes.
    public mutating func number(_ field: Int, _ number: UInt64, keepsZero: Bool = false) {
        guard keepsZero || number != 0 else { return }
        tag(field, .varint)
        varint(number)
    }

    public mutating func fixed64(_ field: Int, _ number: UInt64) {
        tag(field, .fixed64)
        bytes += number.byteSwapped.bigEndianBytes
    }

    public mutating func fixed32(_ field: Int, _ number: UInt32) {
        tag(field, .fixed32)
        bytes += number.byteSwapped.bigEndianBytes
    }

    public mutating func double(_ field: Int, _ number: Double) { fixed64(field, number.bitPattern) }

    public mutating func text(_ field: Int, _ text: String, keepsEmpty: Bool = false) {
        guard keepsEmpty || !text.isEmpty else { return }
        content(field, text.utf8)
    }

    public mutating func message(_ field: Int, _ write: (inout ProtobufWriter) -> Void) {
        var inner = ProtobufWriter()
        write(&inner)
        content(field, inner.bytes)
    }

    /// Writes the numbers together as one `bytes` field, big-endian.
    public mutating func identifier(_ field: Int, _ numbers: UInt64...) {
        content(field, numbers.flatMap(\.bigEndianBytes))
    }
}
