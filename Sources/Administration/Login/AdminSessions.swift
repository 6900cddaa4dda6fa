import Cryptography
import Heimdallr
import Synchronization

/// Sessions of browsers that have sent `admin.token`. A session ends after twelve hours, or when the token changes. Any thread.
final class AdminSessions: Sendable {
    static let lifetime = Duration.seconds(12 * 3600)
    private static let capacity = 64
    /// Limit of wrong tokens in a minute from one address. Further tokens are refused unseen.
    static let patience = GuessLimit.patience

    private struct Session {
        var token: Secret
        var expiresAt: ContinuousClock.Instant
    }

    private struct State {
        var sessions: [String: Session] = [:]
        var guesses = GuessLimit()
    }

    private let state = Mutex(State())

    /// Cookies are shared by all ports of a host.
    static func cookie(port: UInt16?) -> String { "heimdallr-session-\(port ?? 0)" }

    enum Verdict: Equatable {
        case right
        /// - Parameter unreported: number of wrong tokens to log now; `nil` if the log's rate limit forbids it.
        case wrong(unreported: Int?)
        case tooMany(unreported: Int?)
    }

    /// Compares a token, unless too many wrong ones have come from the address.
    func judge(
        _ offered: Secret, expected: Secret, from address: String, now: ContinuousClock.Instant = .now
    ) -> Verdict {
        let name = GuessLimit.name(address: address)
        return state.withLock { state in
            guard !state.guesses.isExhausted(name, now: now) else {
                return .tooMany(unreported: state.guesses.refused(name, now: now))
            }
            guard !expected.isEmpty, offered == expected else {
                return .wrong(unreported: state.guesses.failed(name, now: now))
            }
            return .right
        }
    }

    /// Opens a session for a browser that has sent the token.
    /// - Returns: its identifier; `nil` without random numbers.
    func open(_ token: Secret, now: ContinuousClock.Instant = .now) -> String? {
        guard let id = try? RandomBytes.identifier() else { return nil }
        state.withLock { state in
            state.sessions.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
            state.sessions[id] = Session(token: token, expiresAt: now + Self.lifetime)
        }
        return id
    }

    func isKnown(_ id: String?, expected: Secret, now: ContinuousClock.Instant = .now) -> Bool {
        guard let id, let session = state.withLock({ $0.sessions[id] }) else { return false }
        return session.expiresAt > now && session.token == expected
    }
}
