import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

// The check of the user with `proxy.users`.
extension Forwarder {
    static let guessDelay = Timeout(.seconds(1))

    /// Refuses wrong credentials, with a delay after many from one source. Correct ones never wait.
    func refuse(_ credentials: BasicCredentials?) {
        guard let credentials, let users = rules.users else { return refuseUser() }
        let source = guessSource
        let (waits, user, untold) = users.failed(credentials, from: source)
        if let untold { shard.observer.userGuessed(source, user, untold) }
        guard waits else { return refuseUser() }
        guard shard.holdGuess(from: source) else {
            current.ledger.note(.userRequired)
            leave()
            return stream.close(cut: false)
        }
        heldGuess = source
        current.exchange.hold()
        keepTime()
    }

    func refuseGuess() {
        releaseGuess()
        guard current.exchange.isHeld else { return }
        refuseUser()
    }

    func releaseGuess() {
        guard let source = heldGuess else { return }
        heldGuess = nil
        shard.releaseGuess(from: source)
    }

    private var guessSource: String {
        if let peer = stream.source.peer { return "uid \(peer.user)" }
        return stream.source.address.map { GuessLimit.name(address: $0.host) } ?? "unknown"
    }

    /// After CONNECT and upgrades, the next bytes may be no request (RFC 9931, section 3), so the connection closes.
    private func refuseUser() {
        current.exchange.judge()
        var problem = Problem.userRequired
        problem.closes = stream.request.head.methodKind == .connect || stream.request.head.upgradeRequested
        fail(problem)
    }

    func waitForUsers(_ credentials: BasicCredentials) {
        guard let users = rules.users else { return fail(.internalError) }
        stream.setDeadline(after: .off)
        waitNumber += 1
        let number = waitNumber
        let me = LoopBound(self, on: shard.loop)
        Task {
            await users.refresh()
            me.loop.execute { me.value.usersRead(credentials, number) }
        }
    }

    private func usersRead(_ credentials: BasicCredentials, _ number: Int) {
        guard number == waitNumber, let users = rules.users else { return }
        // A reading that took longer than its validity counts once.
        guard users.judge(credentials, now: .init(nanoseconds: 0)) == .accepted else { return refuse(credentials) }
        current.admitted.caller.user = credentials.user
        admit(isIdentified: true)
    }
}
