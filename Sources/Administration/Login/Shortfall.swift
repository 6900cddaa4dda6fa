import Cryptography
import Heimdallr
import WireText

/// What a sign-in was not granted, for those who should know before it matters.
struct Shortfall {
    /// When the token ends, and the sign-in with it: there is no refresh token. `nil`: it is kept fresh.
    let until: Instant?
    /// Asked for, and not granted.
    let scope: [String]

    struct Instant {
        /// Since 1970-01-01T00:00:00Z.
        let seconds: Int64

        /// RFC 3339, in UTC.
        var timestamp: String { RFC3339.text(Int(seconds)) }

        /// `14:05 UTC`, with the day when it is another one.
        func words(now: Int64) -> String {
            let clock = "\(timestamp.dropFirst(11).prefix(5)) UTC"
            let day = timestamp.prefix(10)
            return day == RFC3339.text(Int(now)).prefix(10) ? clock : "\(day) \(clock)"
        }
    }

    private let now: Int64

    init(_ client: HeimdallrStatus, now: Int64 = WallClock.now()) {
        self.now = now
        let ends = client.loginMethod != nil && !client.hasRefreshToken
        until = ends ? client.expiresIn.map { Instant(seconds: now + $0.components.seconds) } : nil
        scope = client.scopeNotGranted
    }

    /// For the overview: `signed in until 14:05 UTC`.
    var untilWords: String? { until.map { "signed in until \($0.words(now: now))" } }

    var scopeWords: String? { scope.isEmpty ? nil : "not granted: \(scope.joined(separator: ", "))" }

    /// Whole sentences; none when all was granted.
    var sentences: [String] {
        var sentences: [String] = []
        if let untilWords {
            sentences.append(
                "The server granted no refresh token: \(untilWords), and then somebody has to sign in again.")
        }
        if !scope.isEmpty {
            sentences.append(
                "The server did not grant the scope\(scope.count == 1 ? "" : "s") \(scope.joined(separator: ", ")).")
        }
        return sentences
    }
}
