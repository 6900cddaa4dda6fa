/// Names of a few fields, asked about for each field of a request. Loop's thread or any other: a value.
struct FieldNames: Sendable {
    /// In lower case.
    private let names: [[UInt8]]
    /// One bit for each length that a name has; most fields are told apart by theirs.
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
