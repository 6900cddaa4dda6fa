import Glibc
import Heimdallr
import Reactor
import Synchronization

/// The servers and credentials of the next connection attempt, from a connection string that is read again before each
/// attempt. Passwords rotate while the process runs. A string that can't be read, or that is wrong, replaces nothing.
final class FreshTarget: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// One reading, which may outlast the thread's wait.
    private final class Reading: Sendable {
        let end: WakeUp
        let result = Mutex<Result<Secret, any Error>?>(nil)

        init() throws(SystemError) { end = try WakeUp() }
    }

    private struct State {
        var target: ConnectionTarget
        var text: Secret
        /// Reason why a newer string is not used.
        var fault: String?
        var reading: Reading?
    }

    private let state: Mutex<State>
    private let source: PostgresStoreSettings.ConnectionSource?
    private let parse: @Sendable (Secret) throws(TokenStoreError) -> ConnectionTarget
    /// Longest wait for a reading. Afterwards the last string is used.
    private static let patience = Duration.seconds(3)

    /// - Throws: `TokenStoreError` of the kind `.misconfigured`
    init(
        _ text: Secret, _ source: PostgresStoreSettings.ConnectionSource?,
        parse: @escaping @Sendable (Secret) throws(TokenStoreError) -> ConnectionTarget
    ) throws(TokenStoreError) {
        state = Mutex(State(target: try parse(text), text: text))
        self.source = source
        self.parse = parse
    }

    var target: ConnectionTarget { state.withLock { $0.target } }

    /// Reads the string again, and waits for it until the deadline, but not long. Called by one thread.
    /// - Parameter wasRefused: whether the server has refused the credentials, so that a command has to run again.
    /// - Returns: whether the string has changed.
    @discardableResult
    func read(wasRefused: Bool, by deadline: Instant) -> Bool {
        guard let source else { return false }
        guard let reading = state.withLock({ $0.reading }) ?? begin(source, wasRefused) else { return false }
        let end = min(deadline, .now + Self.patience)
        while reading.result.withLock({ $0 == nil }) {
            let left = Instant.now.duration(to: end)
            guard left > .zero else { return false }
            var entry = pollfd(fd: reading.end.descriptor, events: Int16(POLLIN), revents: 0)
            _ = unsafe poll(&entry, 1, Int32(left.wholeMilliseconds))
        }
        return state.withLock { state in
            state.reading = nil
            do {
                guard let text = try reading.result.withLock({ $0 })?.get() else { return false }
                defer { state.fault = nil }
                guard text != state.text else { return false }
                state.target = try parse(text)
                state.text = text
                return true
            } catch {
                let reason = (error as? TokenStoreError)?.description ?? (error as? SecretProviderError)?.description
                state.fault = reason ?? "store.connection can't be read"
                return false
            }
        }
    }

    /// Adds the reason why a newer string is not used.
    func explained(_ fault: PostgresFault) -> PostgresFault {
        guard let reason = state.withLock({ $0.fault }) else { return fault }
        var fault = fault
        fault.text += "; the last good connection string is in use, because \(reason)"
        return fault
    }

    private func begin(_ source: @escaping PostgresStoreSettings.ConnectionSource, _ wasRefused: Bool) -> Reading? {
        guard let reading = try? Reading() else { return nil }
        state.withLock { $0.reading = reading }
        Task.detached {
            let result: Result<Secret, any Error>
            do { result = .success(try await source(wasRefused)) } catch { result = .failure(error) }
            reading.result.withLock { $0 = result }
            reading.end.wake()
        }
        return reading
    }
}
