import Cryptography
import Heimdallr
import Synchronization

/// Browsers that have shown `admin.token` once. A session ends after twelve hours, and when the token changes. Any thread.
final class AdminSessions: Sendable {
    static let lifetime = Duration.seconds(12 * 3600)
    private static let capacity = 64
    /// Wrong tokens in a minute from one address; more are not looked at, whether they come by the form or in a field.
    static let patience = GuessLimit.patience

    private struct Session {
        var token: Secret
        var expiresAt: ContinuousClock.Instant
    }

    private struct State {
        var sessions: [String: Session] = [:]
        var guesses = GuessLimit()
    }

    enum Answer: Equatable {
        case welcome(String)
        case wrong
        case tooMany
        case failed
    }

    private let state = Mutex(State())

    /// Cookies are shared by all ports of a host.
    static func cookie(port: UInt16?) -> String { "heimdallr-session-\(port ?? 0)" }

    /// What a look at a token came to.
    enum Verdict: Equatable {
        case right
        /// - Parameter untold: how many wrong ones the log should hear of now; `nil`: none.
        case wrong(untold: Int?)
        case tooMany(untold: Int?)
    }

    /// Looks at a token, unless too many wrong ones have come from there.
    /// - Parameter address: of the one who sent it.
    func judge(
        _ offered: Secret, expected: Secret, from address: String, now: ContinuousClock.Instant = .now
    ) -> Verdict {
        let name = GuessLimit.name(address: address)
        return state.withLock { state in
            guard !state.guesses.isExhausted(name, now: now) else {
                return .tooMany(untold: state.guesses.refused(name, now: now))
            }
            guard !expected.isEmpty, offered == expected else {
                return .wrong(untold: state.guesses.failed(name, now: now))
            }
            return .right
        }
    }

    func enter(
        _ offered: Secret, expected: Secret, from address: String = "", now: ContinuousClock.Instant = .now,
        told: (Verdict) -> Void = { _ in }
    ) -> Answer {
        let verdict = judge(offered, expected: expected, from: address, now: now)
        told(verdict)
        switch verdict {
        case .right: break
        case .wrong: return .wrong
        case .tooMany: return .tooMany
        }
        return state.withLock { state in
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
