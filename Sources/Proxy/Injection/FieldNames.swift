/// Names of a few fields, checked for each field of a request. A value, for any thread.
struct FieldNames: Sendable {
    /// In lower case.
    private let names: [[UInt8]]
    /// One bit for the length of each name. Most other fields differ in length.
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
