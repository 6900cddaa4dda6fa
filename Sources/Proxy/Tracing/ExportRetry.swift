/// Decides on retries of a batch that a collector did not accept (OTLP/HTTP, "Failures" and "OTLP/HTTP Throttling").
struct ExportRetry: Sendable {
    /// Result of an attempt.
    enum Outcome: Sendable, Equatable {
        case answered(status: Int, retryAfter: Duration?)
        /// No answer came.
        case unreachable
        /// The answer is too large, so a retry would not help.
        case unusable

        /// Whether a retry may help. After an answer, OTLP allows a retry for four statuses only.
        var isTemporary: Bool {
            switch self {
            case .answered(let status, _): [429, 502, 503, 504].contains(status)
            case .unreachable: true
            case .unusable: false
            }
        }

        /// Whether the collector asked for a pause (`Retry-After`).
        var asksForPatience: Bool { if case .answered(_, retryAfter: .some) = self { true } else { false } }
    }

    enum Step: Sendable, Equatable {
        case done
        /// Send the same batch after a pause.
        case again(after: Duration)
        /// Drop the batch, and send nothing for a while.
        case drop(pause: Duration)
    }

    /// Limit of attempts for one batch.
    static let attempts = 5
    /// Upper limit of a `Retry-After` pause.
    static let longest = Duration.seconds(300)
    /// Longest pause for which a batch is kept. After a longer pause, newer spans are more useful.
    static let longestForBatch = Duration.seconds(60)

    private var failures = 0
    private var attempt = 0

    /// - Parameter random: random number in 0 ..< 1.
    mutating func ended(_ outcome: Outcome, random: Double) -> Step {
        attempt += 1
        if case .answered(200..<300, _) = outcome {
            (failures, attempt) = (0, 0)
            return .done
        }
        failures += 1
        var pause = Self.backoff(failures, random)
        if outcome.isTemporary, case .answered(_, let asked?) = outcome { pause = min(Self.longest, max(asked, .zero)) }
        guard outcome.isTemporary, attempt < Self.attempts, pause <= Self.longestForBatch else {
            attempt = 0
            return .drop(pause: pause)
        }
        return .again(after: pause)
    }

    /// Returns a random time between half and all of 1 s, 2 s, 4 s and so on, up to 30 s.
    private static func backoff(_ failures: Int, _ random: Double) -> Duration {
        let ceiling = min(30, 1 << min(failures - 1, 5))
        return .seconds(Double(ceiling) * (0.5 + random / 2))
    }
}
