import HTTPServer
import Heimdallr

/// Why an answer that came to a redirect URI ends no sign-in.
struct UnusableAnswer {
    private let headline: String
    private let lines: [String]
    /// Cause, for the log.
    let reason: String
    /// Whether the script removes the query from the address bar.
    private var isCallback = true

    /// - Parameters:
    ///   - hasState: whether the answer has a `state`.
    ///   - cookies: the browser's cookies. That of an attempt lives as long as the attempt.
    init(_ refusal: LoginAttempts.Refusal, hasState: Bool, cookies: [String: String]) {
        let hasBegun = cookies.keys.contains { $0.hasPrefix(LoginAttempts.Cookie.prefix) }
        switch refusal {
        case .unknown where hasState && hasBegun:
            headline = "This sign-in is unknown"
            lines = [
                "It was finished or cancelled, or the proxy has restarted since it began. Nothing was stored.",
                "Begin again from the overview.",
            ]
            reason = "its sign-in was finished or cancelled, or the proxy has restarted since"
        case .unknown:
            headline = "This sign-in is unknown"
            lines = [
                "It was finished, took longer than ten minutes, or was begun elsewhere. Nothing was stored.",
                "Begin again from the overview.",
            ]
            reason =
                hasState
                ? "its sign-in was finished, took longer than ten minutes, or was begun elsewhere"
                : "it has no state, so its sign-in is unknown"
        case .foreign:
            headline = "This sign-in was begun in another browser"
            lines = [
                "It has to end where it began, so that nobody can make you finish their sign-in. Nothing was stored, "
                    + "and it can still be finished in the browser that began it.",
                hasBegun || !cookies.isEmpty
                    ? "Go back to that browser, or begin again from the overview."
                    : "This browser has sent no cookie. If it is the same browser, allow cookies for this address, and "
                        + "begin again from the overview.",
            ]
            reason = "it came from another browser, or from one that keeps no cookies"
        case .commands:
            headline = "Go back to the terminal"
            lines = [
                "This sign-in was begun by heimdallr-proxy login --paste. Copy the whole address of this page and paste "
                    + "it there."
            ]
            reason = "its sign-in was begun by heimdallr-proxy login --paste, which waits for the address"
            // The command needs the query.
            isCallback = false
        }
    }

    /// - Parameter word: the server's word for its refusal.
    func page(_ word: OAuthError.Code?) -> ServerResponse {
        var page = MessagePage(title: headline, headline: headline, tone: "bad", lines: lines, isCallback: isCallback)
        if let word { page.lines.insert("The answer was a refusal: \(word).", at: 0) }
        return .page(400, page.html)
    }
}
