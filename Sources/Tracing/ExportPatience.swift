/// What is done about a batch that a collector did not take: OTLP/HTTP, "Failures" and "OTLP/HTTP Throttling".
public struct ExportPatience: Sendable {
    /// What became of an attempt.
    public enum Outcome: Sendable, Equatable {
        case answered(status: Int, retryAfter: Duration?)
        /// No answer came.
        case unreachable
        /// An answer that can't be read, or a request that can't be made: the next one is not better.
        case unusable
    }

    public enum Step: Sendable, Equatable {
        case done
        /// The same batch, after so long.
        case again(after: Duration)
        /// The batch is given up; nothing is sent for so long.
        case drop(pause: Duration)
    }

    /// So often a batch is sent at most.
    public static let attempts = 5
    /// A collector that wants to be left alone for longer is asked after this.
    public static let longest = Duration.seconds(300)
    /// A batch is not kept for longer than this by what a collector says: newer spans are worth more.
    public static let longestForBatch = Duration.seconds(60)

    private var failures = 0
    private var attempt = 0

    public init() {}

    /// - Parameter random: 0 ..< 1
    public mutating func ended(_ outcome: Outcome, random: Double) -> Step {
        attempt += 1
        if case .answered(200..<300, _) = outcome {
            (failures, attempt) = (0, 0)
            return .done
        }
        failures += 1
        var pause = Self.backoff(failures, random)
        var isWorthIt = true
        switch outcome {
        // These and no others may be sent again.
        case .answered(429, let asked), .answered(502, let asked), .answered(503, let asked), .answered(504, let asked):
            if let asked { pause = min(Self.longest, max(asked, .zero)) }
        case .unreachable: break
        case .answered, .unusable: isWorthIt = false
        }
        guard isWorthIt, attempt < Self.attempts, pause <= Self.longestForBatch else {
            attempt = 0
            return .drop(pause: pause)
        }
        return .again(after: pause)
    }

    /// From a half to the whole of 1 s, 2 s, 4 s and so on, to 30 s.
    private static func backoff(_ failures: Int, _ random: Double) -> Duration {
        let ceiling = min(30, 1 << min(failures - 1, 5))
        return .seconds(Double(ceiling) * (0.5 + random / 2))
    }
}
