/// A small set of field names, against which each field of a request is checked. A value, for any thread.
struct FieldNames: Sendable {
    /// Names in lower case.
    private let names: [[UInt8]]
    /// Bit set of the names' lengths. It rules out most other fields quickly.
    private let lengths: UInt64

    init(_ names: [[UInt8]] = []) {
        self.names = names
        lengths = names.reduce(0) { $0 | 1 << UInt64(min($1.count, 63)) }
    }

    @inline(__always) func contains(_ name: Span<UInt8>) -> Bool {
        lengths >> UInt64(min(name.count, 63)) & 1 != 0 && isThere(name)
    }

    private func isThere(_ name: Span<UInt8>) -> Bool {
        for candidate in names where name.namesField(candidate) { return true }
        return false
    }
}
