import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports
import Tracing

/// Answers the requests of one client's connection by asking upstreams: does what `Gate` and `Exchange` decide, and has
/// no rules of its own. One for each connection, used for all of its requests. Loop's thread only.
final class Forwarder: ConnectionHandler, NextTurnHandler {
    /// Everything that is of one request; a new one is a new value.
    struct Current {
        var admitted: Admitted
        var exchange = Exchange()
        var ledger: Ledger
        var upstream: Upstream?
        /// Keeps the token: the upstream's, or that of one caller.
        var client: Heimdallr?
        var token: AccessToken?
        /// `nil`: it is not signed.
        var signing: Signing?
        /// What goes on with the upstream.
        var outbound: (any UpstreamExchange)?
        /// The upstream waits for our next turn.
        var isYielding = false
        /// The upstream waits until the client has taken what it was sent.
        var isPaused = false
        var dialAttempt: DialAttempt?
        /// Its span; `nil`: it is not recorded.
        var mark: TraceMark?
        var tunnel: Tunnel?

        init(_ caller: Caller, started: LoopTime) {
            admitted = Admitted(caller)
            ledger = Ledger(started: started)
        }
    }

    let shard: ProxyShard
    /// Those that the current request began with.
    private(set) var rules: RuleSet
    /// `nil`: where it came in nobody listens any more.
    private var role: ListenerRole?
    /// Holds us, until it is closed.
    let connection: ServerConnection
    /// Who calls, as far as the connection says.
    private var caller = Caller()
    /// Who calls by TCP, for the access log and the audit stream.
    let address: SocketAddress?
    var current: Current
    /// Tells the end of an earlier wait from that of the current one.
    var waitNumber = 0
    /// The current wait for a token.
    var tokenWait: Task<Void, Never>?
    /// Where a wrong password came from whose refusal waits.
    var heldGuess: String?
    private var share = TurnShare()
    private var isTurnScheduled = false

    init(_ connection: ServerConnection, shard: ProxyShard) {
        self.connection = connection
        self.shard = shard
        rules = shard.rules
        caller.uid = connection.peer?.user
        let observer = shard.observer
        let isLogged = (observer.accessLog != nil || observer.audit != nil) && connection.peer == nil
        address = isLogged ? connection.peerAddress : nil
        current = Current(caller, started: connection.now)
        takeRole()
    }

    /// From the rules.
    private func takeRole() {
        role = rules.role(of: connection.listener)
        caller.listener = if case .forward(let listener) = role { listener } else { nil }
    }

    // MARK: The request

    func requestBegan(_ connection: ServerConnection) {
        begin()
        admit()
    }

    func requestRefused(_ connection: ServerConnection, _ error: MessageError) {
        begin()
        fail(error.status == Problem.slowHead.status ? .slowHead : Problem(error))
    }

    private func begin() {
        if rules !== shard.rules {
            rules = shard.rules
            takeRole()
        }
        var next = Current(caller, started: connection.now)
        next.exchange.request = connection.withHead { head, _ in Exchange.Request(head) }
        swap(&current, &next)
        if let sampler = shard.sampler { takeMark(sampler) }
        rules.requestStarted()
        if connection.hasClientEnded { shard.endedClients.insert(self) }
    }

    /// - Parameter isIdentified: it is settled who asks.
    func admit(isIdentified: Bool = false) {
        guard let role else { return fail(.draining) }
        let situation = Gate.Situation(
            role: role, hasBytesBehind: connection.hasInput, now: connection.now, isIdentified: isIdentified)
        let admission: Admission
        do throws(Problem) {
            admission = try connection.withHead { head, bytes throws(Problem) in
                try rules.gate.admit(head, bytes, situation, &current.admitted)
            }
        } catch {
            current.upstream = current.admitted.rules.flatMap { [rules] in rules.upstream(for: $0) }
            return fail(error)
        }
        switch admission {
        case .forward: forward()
        case .tunnel(let authority): openTunnel(to: authority)
        case .reply: reply()
        case .readUsers(let credentials): waitForUsers(credentials)
        case .refuseUser(let credentials): refuse(credentials)
        }
    }

    /// With a token where its upstream has a client; waits for one when there is none.
    private func forward() {
        guard let upstream = current.admitted.rules.flatMap({ [rules] in rules.upstream(for: $0) }) else {
            return fail(.internalError)
        }
        current.upstream = upstream
        current.exchange.request.offersUpgrade = current.admitted.upgrade != nil
        if current.admitted.isLast { current.exchange.request.keepsAlive = false }
        if let signer = upstream.signer(current.admitted.entries) {
            guard let keys = upstream.signingKeys else {
                current.ledger.injection = .failed
                return fail(.noCredential)
            }
            guard prepareSignature(signer, keys) else { return }
        }
        goOn()
    }

    /// All that goes onto it is known, but for the token.
    func goOn() {
        guard let upstream = current.upstream else { return fail(.internalError) }
        let rules = upstream.rules
        switch current.admitted.credential {
        case .none: break
        case .kept: current.ledger.injection = .kept
        case .put(let entries):
            guard upstream.hasFixed(entries) else {
                current.ledger.injection = .failed
                return fail(.noCredential)
            }
            guard !entries.isDisjoint(with: rules.injection.tokens) else {
                // Where there is a token, the program's own stays in its place.
                current.ledger.injection = rules.injection.tokens.isEmpty ? .injected : .kept
                break
            }
            current.exchange.request.replaysUnauthorized = rules.settings.onUnauthorized == .replay
            if rules.settings.onUnauthorized == .replay || rules.settings.provesPossession {
                connection.keepBody(upTo: rules.settings.maxReplayBytes)
            }
            current.ledger.injection = .failed
            do throws(Problem) { current.client = try client(at: upstream) } catch { return fail(error) }
            guard let token = upstream.currentToken(of: current.client) else { return waitForToken() }
            current.token = token
            current.ledger.injection = .injected
        }
        send()
    }

    // MARK: Sending

    /// Begins the exchange with the upstream; also for the second try.
    ///
    /// - Parameter fresh: on a connection of its own.
    func send(fresh: Bool = false) {
        guard let upstream = current.upstream, let destination = current.admitted.destination else {
            return fail(.internalError)
        }
        if current.exchange.isSentAgain, !connection.rewindBody() {
            return fail(Problem(TransportError(.internal, message: "a part of the request's body is gone")))
        }
        if current.exchange.isSentAgain { current.ledger.wasReplayed = true }
        let request = UpstreamRequest(destination.origin, current.exchange.request, isFresh: fresh)
        current.exchange.ask()
        current.ledger.times.ask(connection.now)
        current.ledger.isSent = true
        keepTime()
        do throws(TransportError) {
            try upstream.begin(request, for: self) {
                current.outbound = $0
                if current.mark != nil { current.ledger.isHTTP2 = $0.isHTTP2 }
            }
        } catch {
            current.outbound = nil
            report(error)
            fail(Problem(error))
        }
    }

    /// What became of the exchange with the upstream.
    func ended(_ error: TransportError?, wasReused: Bool) {
        switch current.exchange.ended(error, canSendAgain: wasReused && connection.canRewindBody) {
        case .complete: finish()
        case .resend: sendAgain(fresh: true)
        case .replay: waitForToken(insteadOf: current.token)
        case .sendWithNonce: sendAgain(fresh: false)
        case .renew: current.token == nil ? fail(.noCredential) : waitForToken()
        case .sendByHTTP1:
            current.upstream?.noteLackOfHTTP2(connection.now)
            send()
        case .problem(let problem): fail(problem)
        case .cut: cut(because: error.map { Problem($0).error })
        }
    }

    /// - Parameter fresh: on a connection of its own. The first try took its time: a token that has expired or been rejected meanwhile is not
    /// sent again (rule 1).
    private func sendAgain(fresh: Bool) {
        if current.token != nil, let upstream = current.upstream {
            guard let token = upstream.currentToken(of: current.client) else { return waitForToken() }
            current.token = token
        }
        send(fresh: fresh)
    }

    // MARK: The end

    /// Answers with a problem; where another answer is under way, cuts it: nothing may come within an answer but its own
    /// bytes.
    func fail(_ problem: Problem) {
        if current.exchange.isAnswered { return cut(because: problem.error) }
        current.outbound?.cancel()
        let isComplete = connection.isRequestComplete
        let keeps =
            current.exchange.keepsConnection(behind: problem, isRequestComplete: isComplete)
            && !connection.head.upgradeRequested && !connection.mustClose
        current.ledger.status = problem.status
        current.ledger.refusal = problem.word.rawValue
        current.ledger.cause = problem.cause
        current.ledger.error = problem.error
        let rules = current.admitted.rules
        let requestID = shard.observer.accessLog == nil ? nil : requestID
        let isHead = current.exchange.request.isHead
        let before = connection.outputCount
        connection.write {
            ProblemAnswer.append(
                problem, to: &$0, of: connection, client: rules?.settings.client, upstream: rules?.name,
                requestID: requestID,
                isHead: isHead, closes: !keeps)
        }
        current.ledger.bytesSent = UInt64(connection.outputCount - before)
        finish(keeping: keeps)
    }

    /// The answer stands in the output, to its end.
    func finish() {
        finish(keeping: current.exchange.keepsConnection(isRequestComplete: connection.isRequestComplete))
    }

    /// Counts, lets go of what is secret, and goes on with the next request or ends behind this one.
    func finish(keeping: Bool) {
        settle()
        connection.finish(keepsOpen: keeping)
    }

    /// The client has a part of an answer that will never be whole.
    /// - Parameter error: a Proxy Error Type (RFC 9209, section 2.3); `nil`: it is nobody's but the client's doing.
    func cut(because error: String?) {
        current.ledger.wasCut = true
        current.ledger.error = error
        leave()
        connection.cut()
    }

    func clientLeft(_ connection: ServerConnection, _ leaving: ClientLeaving) {
        if leaving == .cutOff, current.exchange.isAnswered { current.ledger.wasCut = true }
        leave()
    }

    /// Ends what goes on for a client that gets nothing more.
    func leave() {
        waitNumber += 1
        tokenWait?.cancel()
        releaseGuess()
        if let tunnel = current.tunnel { return tunnel.end(cut: true) }
        current.outbound?.cancel()
        current.dialAttempt?.cancel()
        settle()
    }

    /// The request is over, whatever became of it.
    func settle() {
        if connection.hasClientEnded { shard.endedClients.remove(self) }
        shard.requestEnded(self)
        current.outbound = nil
        current.token = nil
        current.signing = nil
        current.client = nil
        // The next request is somebody else's, most likely.
        if let upstream = current.upstream, upstream.exchangesCallers { upstream.forgetCredential() }
        current.upstream = nil
    }

    // MARK: Time

    /// Waits for whom the exchange waits for, from now on.
    func keepTime() {
        switch current.exchange.patience {
        case .none: connection.clearDeadline()
        case .guess: connection.setDeadline(after: Self.guessDelay)
        case .response: connection.setDeadline(after: current.upstream?.responseTimeout ?? .off)
        case .requestBody, .client, .tunnel: connection.setDeadline(after: rules.idleTimeout)
        case .upstream: connection.setDeadline(after: current.upstream?.idleTimeout ?? .off)
        case .farewell: connection.setDeadline(after: Self.farewell)
        }
    }

    /// How long the upstream may be silent once the client has ended its side, where that end can't be passed on.
    private static let farewell = Timeout(.milliseconds(500))
    /// What RFC 9209, section 2.3.8, calls an upstream that does not go on.
    private static let silent = "connection_read_timeout"

    func deadlinePassed(_ connection: ServerConnection) {
        switch current.exchange.patience {
        case .none: break
        case .guess: refuseGuess()
        case .tunnel: current.tunnel?.end(cut: true)
        case .farewell:
            leave()
            connection.close()
        case .response, .requestBody, .upstream, .client:
            if let problem = current.exchange.impatience { return fail(problem) }
            cut(because: current.exchange.patience == .upstream ? Self.silent : nil)
        }
    }

    // MARK: Turns

    /// Whether another piece of an answer may be handled in this turn.
    var hasShareLeft: Bool {
        let (turn, now) = (shard.loop.now, LoopTime.current())
        return share.takesMore(turn: turn, now: now)
    }

    /// Goes on with the answer when others have had their turn.
    func waitForTurn() -> BodyTaking {
        current.isYielding = true
        if !isTurnScheduled {
            isTurnScheduled = true
            shard.loop.atNextTurn(self)
        }
        return .partly(0)
    }

    func nextTurn() {
        isTurnScheduled = false
        guard current.isYielding else { return }
        current.isYielding = false
        if current.exchange.isCollecting { return goOnCollecting() }
        current.outbound?.resumeBody()
    }

    /// Goes on with the answer when the client has taken some of it.
    /// - Parameter count: so much of a piece was taken.
    func waitForRoom(after count: Int) -> BodyTaking {
        current.isPaused = true
        connection.waitForRoom()
        return .partly(count)
    }

    func outputDrained(_ connection: ServerConnection) {
        guard current.isPaused else { return }
        current.isPaused = false
        current.outbound?.resumeBody()
    }

    func bodyArrived(_ connection: ServerConnection) {
        if current.exchange.isCollecting { return goOnCollecting() }
        current.outbound?.resumeUpload()
    }
}

extension Exchange.Request {
    init(_ head: RequestHead) {
        isHead = head.methodKind == .head
        isHTTP10 = head.version == .http10
        isIdempotent = head.methodKind.isIdempotent
        expectsContinue = head.expectsContinue
        keepsAlive = head.keepAlive
        framing = head.framing
    }
}

extension UpstreamRequest {
    init(_ origin: Origin, _ request: Exchange.Request, isFresh: Bool) {
        self.init(origin: origin)
        isHead = request.isHead
        expectsContinue = request.expectsContinue
        self.isFresh = isFresh
        upload =
            switch request.framing {
            case .length(let length) where length > 0: .length(length)
            case .chunked: .chunked
            default: request.offersUpgrade ? .upgrade : .none
            }
    }
}
