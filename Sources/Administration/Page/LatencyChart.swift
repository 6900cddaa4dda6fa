import Reports
import WireText

/// A histogram of durations, as bars and in words.
struct LatencyChart {
    struct Bar: Equatable {
        var x: Int
        var height: Int
        var count: UInt64
        /// `up to 25 ms`
        var words: String
        var isSlow: Bool
    }

    static let height = 32
    private static let step = 12
    /// Threshold of a slow bar in seconds.
    private static let slow = 1.0

    let bars: [Bar]
    let median: Double
    let percentile95: Double

    /// - Returns: `nil` when nothing was measured.
    init?(_ histogram: Histogram) {
        guard histogram.total > 0 else { return nil }
        let most = Double(histogram.counts.max() ?? 1)
        bars = histogram.counts.enumerated().map { index, count in
            let bound = index < histogram.bounds.count ? histogram.bounds[index] : nil
            let words =
                bound.map { "up to \(Self.text(seconds: $0))" }
                ?? "over \(Self.text(seconds: histogram.bounds.last ?? 0))"
            let height = count == 0 ? 2 : max(3, Int((Double(count) / most * Double(Self.height)).rounded()))
            return Bar(
                x: index * Self.step, height: height, count: count, words: words,
                isSlow: (bound ?? .infinity) > Self.slow)
        }
        median = Self.quantile(0.5, histogram)
        percentile95 = Self.quantile(0.95, histogram)
    }

    var width: Int { bars.count * Self.step - 3 }
    var summary: String { "half in \(Self.text(seconds: median)), 95 % in \(Self.text(seconds: percentile95))" }
    var quantiles: String { "p50 \(Self.text(seconds: median)) · p95 \(Self.text(seconds: percentile95))" }

    /// Estimates a quantile by linear interpolation in its bucket. The last bucket counts as its lower bound.
    static func quantile(_ share: Double, _ histogram: Histogram) -> Double {
        let wanted = Double(histogram.total) * share
        var below = 0.0
        for (index, count) in histogram.counts.enumerated() {
            let lower = index == 0 ? 0 : histogram.bounds[index - 1]
            guard index < histogram.bounds.count else { return lower }
            if count > 0, below + Double(count) >= wanted {
                return lower + (histogram.bounds[index] - lower) * (wanted - below) / Double(count)
            }
            below += Double(count)
        }
        return histogram.bounds.last ?? 0
    }

    /// `0.4 ms`, `12 ms`, `1.5 s`.
    static func text(seconds: Double) -> String {
        let milliseconds = seconds * 1000
        if milliseconds < 10 { return "\(DecimalText.tenths(milliseconds)) ms" }
        if milliseconds < 1000 { return "\(Int(milliseconds.rounded())) ms" }
        return "\(DecimalText.tenths(seconds)) s"
    }
}

extension DecimalText {
    /// Writes a number with at most one digit behind the point.
    static func tenths(_ value: Double) -> String { thousandths((value * 10).rounded() / 10) }
}
