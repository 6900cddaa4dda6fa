import Cryptography
import Heimdallr
import Synchronization

/// Sessions of browsers that sent `admin.token`. They end after twelve hours, or when the token changes. Any thread.
final class AdminSessions: Sendable {
    static let lifetime = Duration.seconds(12 * 3600)
    private static let capacity = 64
    /// Limit of wrong tokens from an address in a minute. Further tokens are refused without a check.
    static let patience = FailedLoginLimit.patience

    private struct Session {
        var token: Secret
        var expiresAt: ContinuousClock.Instant
    }

    private struct State {
        var sessions: [String: Session] = [:]
        var guesses = FailedLoginLimit()
    }

    private let state = Mutex(State())

    /// Name of the session cookie. It contains the port, because all ports of a host share their cookies.
    static func cookie(port: UInt16?) -> String { "heimdallr-session-\(port ?? 0)" }

    /// Name of a cookie beside the session cookie. It only says that there is one, and comes with links of other sites.
    static func mark(port: UInt16?) -> String { "heimdallr-entered-\(port ?? 0)" }

    enum Verdict: Equatable {
        case right
        /// - Parameter unreported: number of wrong tokens to log now; `nil` if the log's rate limit is reached.
        case wrong(unreported: Int?)
        case tooMany(unreported: Int?)
    }

    /// Compares a token, unless the address has sent too many wrong tokens.
    func judge(
        _ offered: Secret, expected: Secret, from address: String, now: ContinuousClock.Instant = .now
    ) -> Verdict {
        let name = FailedLoginLimit.name(address: address)
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
    /// - Returns: the session's identifier; `nil` if no random numbers are available.
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
