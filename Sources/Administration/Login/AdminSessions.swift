import Cryptography
import Heimdallr
import Synchronization

/// Browsers that have shown `admin.token` once. A session ends after twelve hours, and when the token changes. Any thread.
final class AdminSessions: Sendable {
    static let lifetime = Duration.seconds(12 * 3600)
    private static let capacity = 64
    /// Wrong tokens in a minute; more are not looked at.
    static let patience = 10

    private struct Session {
        var token: Secret
        var expiresAt: ContinuousClock.Instant
    }

    private struct State {
        var sessions: [String: Session] = [:]
        var failures: [ContinuousClock.Instant] = []
    }

    enum Answer: Equatable {
        case welcome(String)
        case wrong
        case tooMany
        case failed
    }

    private let state = Mutex(State())

    /// Cookies are shared by all ports of a host.
    static func cookie(port: Int?) -> String { "heimdallr-session-\(port ?? 0)" }

    func enter(_ offered: Secret, expected: Secret, now: ContinuousClock.Instant = .now) -> Answer {
        state.withLock { state in
            state.failures.removeAll { now - $0 > .seconds(60) }
            guard state.failures.count < Self.patience else { return .tooMany }
            guard !expected.isEmpty, offered == expected else {
                state.failures.append(now)
                return .wrong
            }
            guard let id = try? RandomBytes.identifier() else { return .failed }
            state.sessions.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
            state.sessions[id] = Session(token: expected, expiresAt: now + Self.lifetime)
            return .welcome(id)
        }
    }

    func isKnown(_ id: String?, expected: Secret, now: ContinuousClock.Instant = .now) -> Bool {
        guard let id, let session = state.withLock({ $0.sessions[id] }) else { return false }
        return session.expiresAt > now && session.token == expected
    }
}
