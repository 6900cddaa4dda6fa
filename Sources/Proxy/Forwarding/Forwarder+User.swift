import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

// The waits of *identify*: for the reading of the users' secrets, and for the delayed 407 after a wrong password.
extension Forwarder {
    static let failedLoginDelay = Timeout(.seconds(1))

    /// Refuses missing or wrong credentials: at once, or after a delay if many wrong ones came from the source. Ends the
    /// connection without an answer if the source sends more wrong ones than are compared.
    func refuseUser(_ credentials: BasicCredentials?, wasJudged: Bool) {
        guard let credentials, let users = context.installed.users else { return refuseUser() }
        let source = context.loginSource
        let (refusal, user, unreported) = users.failed(credentials, from: source, wasJudged: wasJudged)
        if let unreported { shard.observer.userFailed(source.name, user, unreported) }
        switch refusal {
        case .atOnce: refuseUser()
        case .delayed: context.exchange.delay()
        case .cut:
            context.ledger.note(Problem(.userRequired))
            perform(.hangUp)
        }
    }

    func refuseAfterDelay() {
        context.exchange.endDelay()
        refuseUser()
    }

    /// Answers 407. Then closes after CONNECT or an upgrade: the next bytes may be no request (RFC 9931, section 3).
    private func refuseUser() {
        let head = stream.request.head
        var problem = Problem(.userRequired)
        problem.closes = head.methodKind == .connect || head.upgradeRequested
        perform(.fail(problem))
    }

    func readUsers(_ credentials: BasicCredentials) {
        guard let users = context.installed.users else { return perform(.fail(Problem(.internalError))) }
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
