import Heimdallr

extension HeimdallrStatus.State {
    var inWords: String { shown.phrase }

    /// A phrase to follow the client's name; a short word for the page; the CSS class of the word's colour.
    var shown: (phrase: String, word: String, tone: String) {
        switch self {
        case .starting: ("starting", "Starting", "busy")
        case .ready: ("has a valid token", "Ready", "good")
        case .fetching: ("is getting a token", "Getting a token", "busy")
        case .idle: ("has no token; the next request gets one", "Idle", "still")
        case .backingOff: ("has no token; waits before it asks again", "No token", "bad")
        case .needsAuthentication: ("needs a sign-in", "Sign-in needed", "warn")
        case .stopped: ("stopped", "Stopped", "still")
        }
    }
}
