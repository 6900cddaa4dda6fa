/// Requests by status code.
public struct StatusCounts: Sendable, Equatable {
    private var counts: [Int: UInt64] = [:]

    public init() {}

    public subscript(code: Int) -> UInt64 {
        get { counts[code] ?? 0 }
        set { counts[code] = newValue == 0 ? nil : newValue }
    }

    /// Codes that occurred, in rising order.
    public var rows: [(code: Int, count: UInt64)] {
        counts.sorted { $0.key < $1.key }.map { (code: $0.key, count: $0.value) }
    }

    public var total: UInt64 { counts.values.reduce(0, &+) }

    public mutating func add(_ other: StatusCounts) { counts.merge(other.counts, uniquingKeysWith: &+) }

    /// - Precondition: these counts include the other's counts.
    public func subtracting(_ other: StatusCounts) -> StatusCounts {
        var rest = self
        for (code, count) in other.counts { rest[code] -= min(count, rest[code]) }
        return rest
    }
}
