/// The last good reading of a value that is read again and again: from a file, a command, an endpoint. Decides what the
/// outcome of a reading changes, whether it is news, and when the next reading is due. Reads nothing itself.
package struct LastGood<Value, Fault: Equatable> {
    package struct Reading {
        package var value: Value
        /// Time after which the value must not be used; `nil` without such a time.
        package var ends: ContinuousClock.Instant?
        /// Time until the next reading; `nil` if no reading follows.
        package var again: Duration?

        package init(_ value: Value, ends: ContinuousClock.Instant? = nil, again: Duration? = nil) {
            self.value = value
            self.ends = ends
            self.again = again
        }
    }

    @usableFromInline var reading: Reading?
    /// Number of the value; 0: none was read yet.
    package private(set) var generation: UInt64 = 0
    /// Reason why the last reading failed.
    package private(set) var fault: Fault?
    /// Number of failed readings since the last good one.
    private var failures = 0

    package init() {}

    package init(_ value: Value) { _ = take(Reading(value)) }

    /// The last good value, whether it has expired or not.
    package var value: Value? { reading?.value }

    /// Whether a reading has ended.
    package var wasRead: Bool { reading != nil || fault != nil }

    /// Returns the last good value; `nil` if there is none, or if it has expired.
    @inlinable package func current() -> Value? {
        if let ends = reading?.ends, ends <= .now { return nil }
        return reading?.value
    }

    /// Takes a good reading.
    /// - Parameter isSame: whether it has the same value as the last good one, which then stays.
    package mutating func take(_ next: Reading, isSame: Bool = false) -> ReadingOutcome<Fault> {
        let isRecovery = fault != nil
        fault = nil
        failures = 0
        if isSame, let value {
            reading = Reading(value, ends: next.ends, again: next.again)
            return isRecovery ? .taken(isRecovery: true) : .unchanged
        }
        reading = next
        generation += 1
        return .taken(isRecovery: isRecovery)
    }

    /// Notes a failed reading.
    package mutating func fail(_ next: Fault) -> ReadingOutcome<Fault> {
        failures += 1
        defer { fault = next }
        return .failed(next, hasValue: reading != nil, isNew: fault != next)
    }

    /// Returns the time until the next reading; `nil` if only a caller starts it.
    /// - Parameter retry: pause after a failed reading, and the limit of its doubling.
    package func pause(retry: (first: Duration, most: Duration)?) -> Duration? {
        guard fault != nil else { return reading?.again }
        return retry.map { min($0.most, $0.first * (1 << min(failures - 1, 20))) }
    }
}

extension LastGood: Sendable where Value: Sendable, Fault: Sendable {}
extension LastGood.Reading: Sendable where Value: Sendable {}

/// News of one reading.
package enum ReadingOutcome<Fault: Equatable>: Equatable {
    case unchanged
    /// A changed value, or the first good reading after a failed one (`isRecovery`).
    case taken(isRecovery: Bool)
    /// A failed reading. The last good value stays, if there is one. `isNew`: not the same fault as before.
    case failed(Fault, hasValue: Bool, isNew: Bool)
}

extension ReadingOutcome: Sendable where Fault: Sendable {}
