import Configuration
import Heimdallr
import Reactor
import Synchronization

/// The users of `proxy.users` and their secrets, shared by all loops.
///
/// Secrets are read off the loops: at start, and again for a request when the last reading is older than `maxAge`. So a
/// changed file takes effect within that time. Wrong credentials also cause a new reading, at most once in
/// `minInterval`, so a new secret works at once. If all secrets are literals in the configuration, they are read only
/// at start. An unreadable secret matches no password.
final class UserDirectory: Sendable {
    enum Verdict: Equatable {
        case accepted
        case refused
        /// The caller must call `refresh`, then check again.
        case outdated
        /// The password was not compared, because the source sends too many wrong ones.
        case unjudged
    }

    /// Treatment of credentials that are not accepted.
    enum Refusal: Equatable {
        case atOnce
        /// The source sent many wrong credentials.
        case delayed
        /// The source sends more wrong credentials than are answered. The connection must end.
        case cut
    }

    private struct State {
        var secrets: [String: Secret] = [:]
        var readAt = LoopTime(nanoseconds: 0)
        var reading: Task<Void, Never>?
        var lost: Set<String> = []
        var guesses = FailedLoginLimit()
        var right = RightLogins()
    }

    private static let maxAge = Duration.seconds(5)
    private static let minInterval = Duration.seconds(1)
    /// Secret compared for an unknown user, so that this check takes as long as any other.
    private static let nobody = Secret([UInt8](repeating: 0xFF, count: block))
    /// Block size: each secret is padded to a multiple of it, which hides the secret's length.
    private static let block = 256

    private let providers: [String: any SecretProvider]
    private let isFixed: Bool
    private let secretLost: @Sendable (String, any Error) -> Void
    private let state = Mutex(State())

    /// - Parameter secretLost: called off the loops with a user's name when the secret became unreadable.
    /// - Throws: `ListenError` if a secret can't be read or is not a valid password.
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

    /// - Parameter now: zero just after the secrets were read.
    func judge(_ credentials: BasicCredentials, from source: LoginSource, now: LoopTime) -> Verdict {
        let offered = Secret(Self.padded(credentials.password))
        return state.withLock { state in
            // A right password must not stand out among guesses that are not answered.
            if state.guesses.count > 0, state.guesses.isFlooding(source.name, now: .now),
                !state.right.has(credentials.user, from: source.name, at: .current())
            {
                return .unjudged
            }
            let age = now.since(state.readAt)
            guard isFixed || age < Self.maxAge else { return .outdated }
            let fits = (state.secrets[credentials.user] ?? Self.nobody) == offered
            if fits {
                Self.note(credentials.user, source, now, in: &state.right)
                return .accepted
            }
            return isFixed || age < Self.minInterval ? .refused : .outdated
        }
    }

    /// Remembers a right password, at most once in `noteInterval` for a connection.
    private static func note(_ user: String, _ source: LoginSource, _ now: LoopTime, in right: inout RightLogins) {
        if let noted = source.noted, noted.user == user, now < noted.until { return }
        let now = max(now, .current())
        right.note(user, from: source.name, at: now)
        source.noted = (user, now + noteInterval)
    }

    private static let noteInterval = Duration.seconds(60)

    /// Records credentials that were not accepted.
    /// - Parameter wasJudged: whether the password was compared.
    /// - Returns: `user`: a known user; other names are not logged, because people type passwords as names. `unreported`:
    ///   the number of failures to log now; `nil`: log nothing.
    func failed(
        _ credentials: BasicCredentials, from source: LoginSource, wasJudged: Bool
    ) -> (refusal: Refusal, user: String?, unreported: Int?) {
        let user = providers[credentials.user] == nil ? nil : credentials.user
        return state.withLock { state in
            let now = ContinuousClock.now
            guard wasJudged, !state.guesses.isFlooding(source.name, now: now) else {
                return (.cut, user, state.guesses.refused(source.name, now: now))
            }
            let refusal: Refusal = state.guesses.isExhausted(source.name, now: now) ? .delayed : .atOnce
            return (refusal, user, state.guesses.failed(source.name, now: now))
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
                let bytes = try await provider.secret().revealedBytes
                guard let text = BasicCredentials.text(bytes) else {
                    let fault = SecretForm(bytes)?.description
                    throw SecretProviderError(
                        "the password \(fault ?? "has a line break or another control character: remove it")")
                }
                secrets[name] = Secret(padded(text))
            } catch {
                errors[name] = error
            }
        }
        return (secrets, errors)
    }

    /// Pads a password with zeros. Passwords have no zero byte, so padded passwords stay distinct.
    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: block - bytes.count % block)
    }
}
