import Cryptography
import Heimdallr
import WireText

/// Requested permissions that a sign-in was not granted.
struct Shortfall {
    /// Expiry of the token of a sign-in without a refresh token, in UTC (RFC 3339); otherwise `nil`.
    let until: String?
    /// Requested scopes that were not granted.
    let scope: [String]

    private let now: Int64

    init(_ client: HeimdallrStatus, now: Int64 = WallClock.now()) {
        self.now = now
        let ends = client.loginMethod != nil && !client.hasRefreshToken
        until = ends ? client.expiresIn.map { RFC3339.text(Int(now + $0.components.seconds)) } : nil
        scope = client.scopeNotGranted
    }

    /// Text for the overview: `signed in until 14:05 UTC`, with the date on another day.
    var untilWords: String? {
        until.map { until in
            let day = until.prefix(10)
            let date = day == RFC3339.text(Int(now)).prefix(10) ? "" : "\(day) "
            return "signed in until \(date)\(until.dropFirst(11).prefix(5)) UTC"
        }
    }

    var scopeWords: String? { scope.isEmpty ? nil : "not granted: \(scope.joined(separator: ", "))" }

    /// Sentences about the missing permissions; empty if all were granted.
    var sentences: [String] {
        var sentences: [String] = []
        if let untilWords {
            sentences.append(
                "The server granted no refresh token: \(untilWords), and then a person has to sign in again.")
        }
        if !scope.isEmpty {
            sentences.append(
                "The server did not grant the scope\(scope.count == 1 ? "" : "s") \(scope.joined(separator: ", ")).")
        }
        return sentences
    }
}
