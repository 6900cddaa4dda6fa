import HTTPMessage
import HTTPServer
import Reactor

/// Checks the user (`proxy.users`), on every listener: an unchecked caller could use the tokens.
enum IdentifyPhase {
    static func run(_ context: inout Context) -> Action {
        guard let users = context.rules.users else { return .next }
        guard
            let offered = context.sender.inside?.credentials
                ?? context.stream.request.with({ BasicCredentials($0, $1) })
        else { return .refuseUser(nil) }
        switch users.judge(offered, now: context.shard.loop.now) {
        case .accepted:
            context.admitted.caller.user = offered.user
            return .next
        case .refused: return .refuseUser(offered)
        case .outdated: return .readUsers(offered)
        }
    }

    /// The users' secrets have been read. A reading that took longer than its validity counts once.
    static func judge(_ credentials: BasicCredentials, _ context: inout Context) -> Action {
        guard let users = context.rules.users,
            users.judge(credentials, now: .init(nanoseconds: 0)) == .accepted
        else { return .refuseUser(credentials) }
        context.admitted.caller.user = credentials.user
        return .next
    }
}
