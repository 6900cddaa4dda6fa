import HTTPMessage
import Heimdallr
import Reactor

// Who asks, where `proxy.users` wants to know. On every listener: whoever gets in can use the tokens.
extension ClientConnection {
    /// Goes on with the request once it is known whose it is, or answers 407.
    func identify() {
        caller.user = nil
        guard let users = shard.users else { return admitted() }
        guard let credentials = offeredCredentials else { return refuseUser() }
        switch users.judge(credentials, now: shard.loop.now) {
        case .accepted: accept(credentials)
        case .refused: refuse(credentials, users)
        case .outdated: waitForUsers(users, credentials)
        }
    }

    private func accept(_ credentials: BasicCredentials) {
        caller.user = credentials.user
        admitted()
    }

    /// Wrong ones are slow to be refused once many have come from the same place, and so few can be tried. Those who know
    /// theirs never wait, wherever they are.
    private func refuse(_ credentials: BasicCredentials, _ users: UserDirectory) {
        let place = guessingPlace
        let (waits, user, untold) = users.failed(credentials, from: place)
        if let untold { shard.observer.userGuessed(place, user, untold) }
        guard waits else { return refuseUser() }
        guard shard.holdGuess(from: place) else {
            status = Problem.userRequired.status
            return hangUp()
        }
        heldGuess = place
        phase = .awaitingToken
        waitNumber += 1
        setDeadline(.guess, after: Self.guessDelay)
    }

    static let guessDelay = Timeout(.seconds(1))

    /// The wait is over.
    func refuseGuess() {
        releaseGuess()
        guard phase == .awaitingToken else { return }
        phase = .exchanging
        refuseUser()
        readHead()
    }

    func releaseGuess() {
        guard let place = heldGuess else { return }
        heldGuess = nil
        shard.releaseGuess(from: place)
    }

    private var guessingPlace: String {
        if let peer { return "uid \(peer.user)" }
        return socket.peerAddress.map { GuessLimit.name(address: $0.host) } ?? "unknown"
    }

    /// Behind CONNECT and upgrades bytes may follow that are no request (RFC 9931, section 3): they are not read as one.
    private func refuseUser() {
        var problem = Problem.userRequired
        problem.closes = head.methodKind == .connect || head.upgradeRequested
        // For the log.
        switch try? RequestTarget(parsing: headBytes.bytes, head: head) {
        case .origin(let path), .absolute(_, _, let path): target = .path(path)
        default: break
        }
        fail(problem)
    }

    private func waitForUsers(_ users: UserDirectory, _ credentials: BasicCredentials) {
        phase = .awaitingToken
        clearDeadline()
        waitNumber += 1
        let number = waitNumber
        let me = LoopBound(self, on: shard.loop)
        Task {
            await users.refresh()
            me.loop.execute { me.value.usersRead(users, credentials, number) }
        }
    }

    private func usersRead(_ users: UserDirectory, _ credentials: BasicCredentials, _ number: Int) {
        guard phase == .awaitingToken, number == waitNumber else { return }
        phase = .exchanging
        // A reading that took longer than it is good for is good once.
        if users.judge(credentials, now: .init(nanoseconds: 0)) == .accepted {
            accept(credentials)
        } else {
            refuse(credentials, users)
        }
        readHead()
    }

    /// `nil`: none, several, or none that can be read.
    private var offeredCredentials: BasicCredentials? {
        headBytes.withBytes { bytes in
            var found: ByteRange?
            for field in head.fields where field.known == .proxyAuthorization {
                guard found == nil else { return nil }
                found = field.value
            }
            return found.flatMap { BasicCredentials(bytes[$0]) }
        }
    }
}
