package import FileSystem

/// A secret that may change while the process runs. After a failed reading, the last good value stays. Any thread. A
/// reading never blocks the caller of `current`.
package final class LiveSecret: SecretProvider {
    package enum Schedule: Sendable, Equatable {
        /// Reads for each token request, and on `refresh`.
        case eachTime
        /// Reads in the background at this interval. Callers get the last value. After a failed reading, reads again
        /// after 2 s, 4 s, 8 s and so on, up to the interval.
        case every(Duration)
    }

    package typealias Outcome = ReadingOutcome<SecretProviderError>

    /// Whether each use reads the secret.
    private let isReadEachTime: Bool
    private let value: FreshValue<RestingSecret>

    package init(_ secret: Secret) {
        isReadEachTime = false
        value = FreshValue(RestingSecret(secret))
    }

    /// - Parameters:
    ///   - read: reads and checks the secret, and may take time. Of its errors, only a `SecretProviderError` is shown.
    ///   - onOutcome: called after each reading.
    package init(
        _ schedule: Schedule, read: @escaping @Sendable () async throws -> Secret,
        onOutcome: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        isReadEachTime = schedule == .eachTime
        let interval: Duration? = if case .every(let interval) = schedule { interval } else { nil }
        value = FreshValue(
            retry: interval.map { (first: min($0, .seconds(2)), most: $0) },
            isSame: { former, next in next.opened.map { $0 == former.opened } ?? false },
            read: { .init(RestingSecret(try await read()), again: interval) }, onOutcome: onOutcome)
    }

    /// Returns a copy of the last good value; `nil` before the first. Never waits. Reuse it until `generation` changes.
    package func current() -> Secret? { value.current()?.opened }

    /// Number of the current value; 0: none was read yet.
    package var generation: UInt64 { value.generation }

    package var fault: SecretProviderError? { value.fault }

    /// Returns the last good value. Reads the secret first if the schedule is `eachTime`, or if nothing was read yet: after
    /// a failure only the timer tries again.
    /// - Throws: `SecretProviderError` if there is no good value.
    package func secret() async throws -> Secret {
        await isReadEachTime ? value.readAnew() : value.start()
        guard let secret = current() else { throw fault ?? SecretProviderError("the secret was not read") }
        return secret
    }

    /// Reads the secret again. Concurrent callers wait for the same reading.
    package func refresh() async { await value.refresh() }
}
