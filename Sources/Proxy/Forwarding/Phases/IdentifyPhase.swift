import HTTPMessage
import HTTPServer
import Reactor

/// Checks the user (`proxy.users`) on every listener, because each listener gives access to tokens.
enum IdentifyPhase {
    static func run(_ context: inout Context) -> Action {
        // Who starts an enclosed program has said which user it is. It can't send a password to a proxy it knows nothing of.
        guard context.installed.users != nil, context.sender.enclosed?.user == nil else { return .next }
        guard
            let offered = context.sender.inside?.credentials
                ?? context.stream.request.with({ BasicCredentials($0, $1) })
        else { return .refuseUser(nil) }
        return judge(offered, now: context.shard.loop.now, &context)
    }

    /// - Parameter now: zero just after the secrets were read, so that they count as new however long the reading took.
    static func judge(_ credentials: BasicCredentials, now: LoopTime, _ context: inout Context) -> Action {
        switch context.installed.users?.judge(credentials, from: context.loginSource, now: now) {
        case .accepted:
            context.admitted.caller.user = credentials.user
            return .next
        case .outdated: return .readUsers(credentials)
        case .refused, nil: return .refuseUser(credentials)
        case .unjudged: return .refuseUser(credentials, wasJudged: false)
        }
    }
}
