/// What the log tells of a request's replay.
struct Replay {
    var wasMade = false
    /// Whether the last answer refused the token.
    var isRefused = false
    /// Why the answer, which refuses the proxy's credential, passes without a replay; `nil` for other answers.
    var obstacle: NotReplayed?
}

/// Why an answer that refuses the proxy's credential passes to the program. The raw values are words of the access log.
enum NotReplayed: String {
    /// A part of the request's body was sent and is not kept.
    case body
    /// A part of the answer has passed already.
    case answered
    case challenge
    case fixed
    case noToken = "no-token"
    case off
    case own
    case paused
    case replayed
    case signIn = "sign-in"

    var sentence: String {
        switch self {
        case .body: "the request's body was not kept for a replay (max_replay_bytes)"
        case .answered: "a part of the answer had passed before the token was refused"
        case .challenge: "the answer's challenge does not blame the token"
        case .fixed: "a fixed credential can't be renewed: check the secrets under inject"
        case .noToken: "no new token came"
        case .off: "on_unauthorized is set to pass"
        case .own: "the program's own credential was sent"
        case .paused: "this API refused a new token before, so no other one is requested for now"
        case .replayed: "the API refused a new token, too"
        case .signIn: "only a sign-in brings a new token"
        }
    }
}
