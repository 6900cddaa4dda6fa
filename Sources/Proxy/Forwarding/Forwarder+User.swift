import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

// Waits in *identify*: for the users' secrets to be read, and before the 407 for a wrong password.
extension Forwarder {
    static let failedLoginDelay = Timeout(.seconds(1))

    /// Refuses wrong credentials, with a delay after many from one source. Correct credentials never wait.
    func refuseUser(_ credentials: BasicCredentials?) {
        guard let credentials, let users = context.rules.users else { return refuseUser() }
        let source = guessSource
        let (waits, user, untold) = users.failed(credentials, from: source)
        if let untold { shard.observer.userFailed(source, user, untold) }
        guard waits else { return refuseUser() }
        guard shard.delayFailedLogin(from: source) else {
            context.ledger.note(.userRequired)
            return perform(.leave(closes: true))
        }
        heldGuess = source
        context.exchange.hold()
    }

    func refuseGuess() {
        releaseGuess()
        context.exchange.goOn()
        refuseUser()
    }

    func releaseGuess() {
        guard let source = heldGuess else { return }
        heldGuess = nil
        shard.releaseGuess(from: source)
    }

    private var guessSource: String {
        if let peer = stream.source.peer { return "uid \(peer.user)" }
        return stream.source.address.map { FailedLoginLimit.name(address: $0.host) } ?? "unknown"
    }

    /// Answers 407. Closes after CONNECT and upgrades: the next bytes may be no request (RFC 9931, section 3).
    private func refuseUser() {
        let head = stream.request.head
        var problem = Problem.userRequired
        problem.closes = head.methodKind == .connect || head.upgradeRequested
        perform(.fail(problem))
    }

    func readUsers(_ credentials: BasicCredentials) {
        guard let users = context.rules.users else { return perform(.fail(.internalError)) }
        waitNumber += 1
        let number = waitNumber
        let me = LoopBound(self, on: shard.loop)
        Task {
            await users.refresh()
            me.loop.execute { me.value.usersRead(credentials, number) }
        }
    }

    private func usersRead(_ credentials: BasicCredentials, _ number: Int) {
        guard number == waitNumber else { return }
        let action = IdentifyPhase.judge(credentials, now: LoopTime(nanoseconds: 0), &context)
        if case .next = action { run(from: .admit) } else { perform(action) }
    }
}
