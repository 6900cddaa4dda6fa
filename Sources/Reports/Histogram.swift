/// Counts of durations, in buckets by length.
public struct Histogram: Sendable, Equatable {
    /// Upper bounds of the buckets in seconds, in rising order. The last bucket has no bound.
    public let bounds: [Double]
    /// Count of each bucket: one element more than `bounds`. Each value is counted in one bucket only.
    public private(set) var counts: [UInt64]
    /// Sum in seconds.
    public private(set) var sum = 0.0

    public init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Converts a histogram in nanoseconds.
    /// - Parameters:
    ///   - counts: one element more than `bounds`. Each value is counted in one bucket only.
    ///   - sum: sum of all values.
    public init(nanoseconds bounds: [UInt64], counts: [UInt64], sum: UInt64) {
        self.init(bounds: bounds.map { Double($0) / 1e9 })
        for (bucket, count) in counts.enumerated() where bucket < self.counts.count { add(count, bucket: bucket) }
        add(seconds: Double(sum) / 1e9)
    }

    public mutating func record(_ duration: Duration) {
        let seconds = max(0, duration.inSeconds)
        counts[bounds.firstIndex { seconds <= $0 } ?? bounds.count] += 1
        sum += seconds
    }

    /// Adds values counted elsewhere. Their sum needs a call of `add(seconds:)`.
    /// - Parameter bucket: index from 0 to the number of bounds.
    public mutating func add(_ count: UInt64, bucket: Int) { counts[bucket] &+= count }
    /// - Parameter seconds: sum of the values that `add(_:bucket:)` has added.
    public mutating func add(seconds: Double) { sum += seconds }

    /// - Precondition: the bounds are the same.
    public mutating func add(_ other: Histogram) {
        for (index, count) in other.counts.enumerated() where index < counts.count { counts[index] &+= count }
        sum += other.sum
    }

    /// - Precondition: the bounds are the same, and this histogram includes the other's values.
    public func subtracting(_ other: Histogram) -> Histogram {
        var rest = self
        for (index, count) in other.counts.enumerated() where index < counts.count {
            rest.counts[index] -= min(count, rest.counts[index])
        }
        rest.sum = max(0, sum - other.sum)
        return rest
    }

    public var total: UInt64 { counts.reduce(0, &+) }
}

extension Duration {
    public var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
