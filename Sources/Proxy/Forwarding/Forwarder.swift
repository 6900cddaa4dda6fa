import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports

/// Answers the requests of one client connection: performs what `Gate` and `Exchange` decide. Reused for all requests
/// of the connection. Loop's thread only.
final class Forwarder: ClientStreamHandler, NextTurnHandler {
    struct Current {
        var admitted: Admitted
        var exchange = Exchange()
        var ledger: Ledger
        var upstream: Upstream?
        /// The OAuth client whose token the request carries: the upstream's, or that of one caller.
        var client: Heimdallr?
        var token: AccessToken?
        /// `nil`: the request is not signed.
        var signing: Signing?
        var outbound: (any UpstreamExchange)?
        var isYielding = false
        /// The upstream waits until the client has taken its bytes.
        var isPaused = false
        var dialAttempt: DialAttempt?
        /// Trace mark of the request; `nil`: no span is recorded.
        var mark: TraceMark?
        var tunnel: Tunnel?

        init(_ caller: Caller, started: LoopTime) {
            admitted = Admitted(caller)
            ledger = Ledger(started: started)
        }
    }

    let shard: ProxyShard
    /// The rules that the current request began with.
    private(set) var rules: RuleSet
    /// Role of the connection's listener; `nil` after the listener closed.
    private var role: ListenerRole?
    /// Owns this object until it is closed.
    let stream: any ClientStream
    /// Caller, as far as the connection shows it.
    private var caller = Caller()
    /// Address of a TCP client, for the access log and the audit stream.
    let address: SocketAddress?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var current: Current
    /// Tells the end of an earlier wait from that of the current one.
    var waitNumber = 0
    var tokenWait: Task<Void, Never>?
    /// Source address of the failed login whose 407 is delayed.
    var heldGuess: String?
    var share = TurnShare()
    var isTurnScheduled = false

    init(_ stream: any ClientStream, shard: ProxyShard) {
        self.stream = stream
        self.shard = shard
        rules = shard.rules
        caller.uid = stream.source.peer?.user
        let observer = shard.observer
        let isLogged = (observer.accessLog != nil || observer.audit != nil) && stream.source.peer == nil
        address = isLogged ? stream.source.address : nil
        current = Current(caller, started: shard.loop.now)
        takeRole()
    }

    /// Sets the role and the caller's listener from the rules.
    private func takeRole() {
        role = rules.role(of: stream.source.listener)
        caller.listener = if case .forward(let listener) = role { listener } else { nil }
    }

    // MARK: The request

    func requestBegan() {
        begin()
        admit()
    }

    func requestRefused(_ error: MessageError) {
        begin()
        fail(error.status == Problem.slowHead.status ? .slowHead : Problem(error))
    }

    private func begin() {
        if rules !== shard.rules {
            rules = shard.rules
            takeRole()
        }
        current = Current(caller, started: shard.loop.now)
        current.exchange.request = stream.request.with { head, _ in Exchange.Request(head) }
        if let sampler = shard.sampler { takeMark(sampler) }
        rules.requestStarted()
        if stream.progress.hasClientEnded { shard.endedClients.insert(self) }
    }

    /// - Parameter isIdentified: whether the caller has been checked.
    func admit(isIdentified: Bool = false) {
        guard let role else { return fail(.draining) }
        let situation = Gate.Situation(
            role: role, hasBytesBehind: stream.hasInput(reading: false) == true, now: shard.loop.now, isIdentified: isIdentified)
        let admission: Admission
        do throws(Problem) {
            admission = try stream.request.with { head, bytes throws(Problem) in
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

    /// Sends the request on, with a token if its upstream has a client. Waits for a token when there is none.
    private func forward() {
        guard let upstream = current.admitted.rules.flatMap({ [rules] in rules.upstream(for: $0) }) else {
            return fail(.internalError)
        }
        current.upstream = upstream
        current.exchange.forward(current.admitted)
        if let signer = upstream.injected.signer(current.admitted.entries) {
            guard let keys = upstream.injected.signingKeys else {
                current.ledger.injection = .failed
                return fail(.noCredential)
            }
            guard prepareSignature(signer, keys) else { return }
        }
        goOn()
    }

    /// Continues once everything but the token is known.
    func goOn() {
        guard let upstream = current.upstream else { return fail(.internalError) }
        let rules = upstream.rules
        switch current.admitted.credential {
        case .none: break
        case .kept: current.ledger.injection = .kept
        case .put(let entries):
            guard upstream.injected.hasFixed(entries) else {
                current.ledger.injection = .failed
                return fail(.noCredential)
            }
            guard !entries.isDisjoint(with: rules.injection.tokens) else {
                // The upstream has a token, but the program's own one was kept.
                current.ledger.injection = rules.injection.tokens.isEmpty ? .injected : .kept
                break
            }
            current.exchange.request.replaysUnauthorized = rules.settings.onUnauthorized == .replay
            if rules.settings.onUnauthorized == .replay || rules.settings.provesPossession {
                stream.keepBody(upTo: rules.settings.maxReplayBytes)
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

    /// Begins the exchange with the upstream, for the first or the second attempt.
    /// - Parameter fresh: whether to use a new connection.
    func send(fresh: Bool = false) {
        guard let upstream = current.upstream, let destination = current.admitted.destination else {
            return fail(.internalError)
        }
        if current.exchange.isSentAgain, !stream.rewindBody() {
            return fail(Problem(TransportError(.internal, message: "a part of the request's body is gone")))
        }
        if current.exchange.isSentAgain { current.ledger.wasReplayed = true }
        let request = UpstreamRequest(destination.origin, current.exchange.request, isFresh: fresh)
        current.exchange.ask()
        current.ledger.times.ask(shard.loop.now)
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

    /// - Parameter trailers: of a whole answer.
    func ended(
        _ error: TransportError?, wasReused: Bool, trailers: [(name: [UInt8], value: [UInt8])] = []
    ) {
        switch current.exchange.ended(error, canSendAgain: wasReused && stream.progress.canRewind) {
        case .complete: finish(trailers: trailers)
        case .resend: sendAgain(fresh: true)
        case .replay: waitForToken(insteadOf: current.token)
        case .sendWithNonce: sendAgain(fresh: false)
        case .renew: current.token == nil ? fail(.noCredential) : waitForToken()
        case .sendByHTTP1:
            current.upstream?.noteLackOfHTTP2(shard.loop.now)
            send()
        case .problem(let problem): fail(problem)
        case .cut: cut(because: error.map { Problem($0).error })
        }
    }

    /// Sends the request again. A token that expired or was rejected during the first attempt is not sent again (rule 1).
    /// - Parameter fresh: whether to use a new connection.
    private func sendAgain(fresh: Bool) {
        if current.token != nil, let upstream = current.upstream {
            guard let token = upstream.currentToken(of: current.client) else { return waitForToken() }
            current.token = token
        }
        send(fresh: fresh)
    }

    // MARK: The end

    /// Answers with a problem. An answer that has begun is cut instead: no other bytes may follow its beginning.
    func fail(_ problem: Problem) {
        if current.exchange.isAnswered { return cut(because: problem.error) }
        current.outbound?.cancel()
        let keeps = keepsConnection(behindOwn: problem.closes || stream.request.head.upgradeRequested)
        current.ledger.note(problem)
        let rules = current.admitted.rules
        let requestID = shard.observer.accessLog == nil ? nil : requestID
        let answer = ProblemAnswer(
            problem, client: rules?.settings.client, upstream: rules?.name, requestID: requestID)
        answerOwn(problem.status, Array(problem.phrase.utf8), answer.body, keeping: keeps, answer.appendFields)
    }

    /// Finishes the request; the output holds the whole answer.
    func finish(trailers: [(name: [UInt8], value: [UInt8])] = []) {
        finish(trailers: trailers, keeping: current.exchange.keepsConnection(isRequestComplete: stream.progress.isRequestComplete))
    }

    /// Counts the request, drops its secrets, and then takes the next request or closes the connection.
    func finish(trailers: [(name: [UInt8], value: [UInt8])] = [], keeping: Bool) {
        settle()
        stream.finish(trailers: trailers, keepsOpen: keeping)
    }

    /// Cuts the connection of a client that has received part of an answer.
    /// - Parameter error: a Proxy Error Type (RFC 9209, section 2.3); `nil`: the client is the cause.
    func cut(because error: String?) {
        current.ledger.wasCut = true
        current.ledger.error = error
        leave()
        stream.close(cut: true)
    }

    func clientLeft(_ leaving: ClientLeaving) {
        if leaving == .cutOff, current.exchange.isAnswered { current.ledger.wasCut = true }
        leave()
    }

    /// Ends all work for a client that gets no further bytes.
    func leave() {
        waitNumber += 1
        tokenWait?.cancel()
        releaseGuess()
        if let tunnel = current.tunnel { return tunnel.end(cut: true) }
        current.outbound?.cancel()
        current.dialAttempt?.cancel()
        settle()
    }

    /// Counts the request and drops its state, after any outcome.
    func settle() {
        if stream.progress.hasClientEnded { shard.endedClients.remove(self) }
        shard.requestEnded(self)
        current.outbound = nil
        current.token = nil
        current.signing = nil
        current.client = nil
        // The next request probably comes from another caller.
        if let upstream = current.upstream, upstream.exchangesCallers { upstream.injected.forgetToken() }
        current.upstream = nil
    }
}
