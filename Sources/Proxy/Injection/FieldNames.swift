import HTTPMessage
import WireText

/// A small set of field names, against which each field of a request is checked, as `MangledName` compares names. A value,
/// for any thread.
struct FieldNames: Sendable {
    /// Letters and digits of the names, in lower case.
    private let names: [[UInt8]]
    /// Bit sets of the names' first and last bytes. They rule out most other fields quickly.
    private let firsts: UInt64
    private let lasts: UInt64

    /// - Parameter names: names as `MangledName.plain` returns them.
    init(_ names: [[UInt8]] = []) {
        self.names = names
        firsts = names.reduce(0) { $0 | ($1.first.map(Self.bit) ?? 0) }
        lasts = names.reduce(0) { $0 | ($1.last.map(Self.bit) ?? 0) }
    }

    @inline(__always) func contains(_ name: Span<UInt8>) -> Bool {
        guard firsts != 0, !name.isEmpty else { return false }
        let (first, last) = (name[0], name[name.count - 1])
        // A name may begin or end with other characters than letters and digits.
        if ASCII.isAlphanumeric(first), firsts & Self.bit(first) == 0 { return false }
        if ASCII.isAlphanumeric(last), lasts & Self.bit(last) == 0 { return false }
        return isThere(name)
    }

    /// The bit of a letter, in either case, or digit. Some share a bit.
    @inline(__always) private static func bit(_ byte: UInt8) -> UInt64 { 1 << UInt64((byte | 0x20) & 0x3F) }

    private func isThere(_ name: Span<UInt8>) -> Bool {
        for candidate in names where name.mayName(field: candidate) { return true }
        return false
    }
}
