import Heimdallr
import Reactor
import Synchronization

/// The users of `proxy.users` and their secrets, shared by all loops.
///
/// Secrets are read off the loops: at start, and then for a request when the last reading is older than `maxAge`, so
/// that a changed file takes effect within that time. Wrong credentials are checked once more after a new reading, at
/// most once in `minInterval`, so that a new secret works at once. An unreadable secret matches nothing.
final class UserDirectory: Sendable {
    enum Verdict: Equatable {
        case accepted
        case refused
        /// The caller calls `refresh`, then checks again.
        case outdated
    }

    private struct State {
        var secrets: [String: Secret] = [:]
        var readAt = LoopTime(nanoseconds: 0)
        var reading: Task<Void, Never>?
        var lost: Set<String> = []
        var guesses = GuessLimit()
    }

    private static let maxAge = Duration.seconds(5)
    private static let minInterval = Duration.seconds(1)
    /// Compared for an unknown user, so that the check takes as long.
    private static let nobody = Secret([UInt8](repeating: 0xFF, count: block))
    /// Secrets are compared in multiples of this size, which hides their length.
    private static let block = 256

    private let providers: [String: any SecretProvider]
    private let isFixed: Bool
    private let secretLost: @Sendable (String, any Error) -> Void
    private let state = Mutex(State())

    /// - Parameter secretLost: called off the loops when a user's secret can't be read any more; the name first.
    /// - Throws: `ListenError` when a secret can't be read or is no password.
    init(
        _ providers: [String: any SecretProvider], secretLost: @escaping @Sendable (String, any Error) -> Void
    ) async throws(ProxyServer.ListenError) {
        self.providers = providers
        self.secretLost = secretLost
        isFixed = providers.values.allSatisfy { $0 is Secret }
        let (secrets, errors) = await Self.secrets(of: providers)
        if let (name, error) = errors.min(by: { $0.key < $1.key }) {
            throw ProxyServer.ListenError(description: "proxy.users.\(name): \(error)")
        }
        state.withLock { state in
            state.secrets = secrets
            state.readAt = .current()
        }
    }

    func judge(_ credentials: BasicCredentials, now: LoopTime) -> Verdict {
        let offered = Secret(Self.padded(credentials.password))
        return state.withLock { state in
            let age = now.since(state.readAt)
            guard isFixed || age < Self.maxAge else { return .outdated }
            let fits = (state.secrets[credentials.user] ?? Self.nobody) == offered
            if fits { return .accepted }
            return isFixed || age < Self.minInterval ? .refused : .outdated
        }
    }

    /// Records refused credentials.
    /// - Parameter source: their source.
    /// - Returns: whether the answer has to be delayed, after many wrong ones from there; and the number to log now,
    ///   with the user's name only if that user exists, because people type passwords there.
    func failed(
        _ credentials: BasicCredentials, from source: String
    ) -> (waits: Bool, user: String?, untold: Int?) {
        let user = providers[credentials.user] == nil ? nil : credentials.user
        return state.withLock { state in
            let now = ContinuousClock.now
            let waits = state.guesses.isExhausted(source, now: now)
            return (waits, user, state.guesses.failed(source, now: now))
        }
    }

    /// Reads the secrets again. Concurrent callers wait for the same reading.
    func refresh() async {
        let task = state.withLock { state in
            if let reading = state.reading { return reading }
            let reading = Task { await read() }
            state.reading = reading
            return reading
        }
        await task.value
    }

    private func read() async {
        let began = LoopTime.current()
        let (secrets, errors) = await Self.secrets(of: providers)
        let before = state.withLock { state in
            state.secrets = secrets
            state.readAt = began
            state.reading = nil
            defer { state.lost = Set(errors.keys) }
            return state.lost
        }
        for (name, error) in errors where !before.contains(name) { secretLost(name, error) }
    }

    private static func secrets(
        of providers: [String: any SecretProvider]
    ) async -> (secrets: [String: Secret], errors: [String: any Error]) {
        var secrets: [String: Secret] = [:]
        var errors: [String: any Error] = [:]
        for (name, provider) in providers {
            do {
                guard let text = BasicCredentials.text(try await provider.secret().revealedBytes) else {
                    throw SecretProviderError(
                        "a password has no line breaks and no control characters, and this one has")
                }
                secrets[name] = Secret(padded(text))
            } catch {
                errors[name] = error
            }
        }
        return (secrets, errors)
    }

    /// Passwords have no zero byte, so padded passwords stay distinct.
    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: block - bytes.count % block)
    }
}
