import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

/// Answers the requests of one program. Passes events to the phases and to `Exchange`, and performs the returned
/// actions. Loop's thread only.
final class Forwarder: ProgramStreamHandler, NextTurnHandler {
    /// The program's stream. It retains this object until the stream is closed.
    let stream: any ProgramStream
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var context: Context
    /// The request's exchange with its upstream; `nil` if none is under way.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var upstreamStream: (any UpstreamStream)?
    var dialAttempt: DialAttempt?
    /// Connections on which the program logged in; `nil` if it never did.
    var bond: CarrierBond?
    /// Number of the latest wait: for a token, the users' secrets or a dial. A result with another number is ignored.
    var waitNumber = 0
    var tokenWait: Task<Void, Never>?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var share = TurnShare()
    private var isTurnScheduled = false

    init(_ context: Context) {
        stream = context.stream
        self.context = context
    }

    var shard: ProxyShard { context.shard }

    // MARK: Events of the program

    func requestBegan() {
        begin()
        run(from: .identify)
    }

    func requestRefused(_ error: MessageError) {
        begin()
        if isHello { return beginRedirected() }
        perform(.fail(error.status == Problem(.slowHead).status ? Problem(.slowHead) : Problem(error)))
    }

    private func begin() {
        context.begin()
        if stream.progress.hasProgramEnded { shard.endedPrograms.insert(self) }
    }

    func handler(for stream: any ProgramStream) -> (any ProgramStreamHandler)? {
        guard context.admitsStream else { return nil }
        // Made once for all streams of the connection.
        if shard.installed.users != nil { _ = context.loginSource }
        return Forwarder(Context(stream, of: context))
    }

    func bodyArrived() { perform(context.exchange.bodyArrived()) }

    func programEnded() { shard.endedPrograms.insert(self) }

    func roomCame() { perform(context.exchange.roomCame()) }

    func serverStops() {
        switch context.exchange.state {
        case .collecting, .awaitingToken, .asked, .refused, .announced:
            RecordPhase.report(.drain, &context)
            perform(.fail(Problem(.draining)))
        case .deciding, .delayed, .greeted, .connected, .answered, .switched, .tunnelled: break
        }
    }

    func programLeft(_ leaving: ProgramLeaving) {
        if leaving == .stopped, !context.exchange.isAnswered {
            // Over HTTP/2 the stop of the server ends the streams without an answer.
            context.ledger.note(Problem(.draining))
        } else if leaving != .gone {
            context.ledger.wasCut = true
        }
        switch leaving {
        case .stalled: RecordPhase.report(.unreadAnswer, &context)
        case .stopped: RecordPhase.report(.drain, &context)
        case .gone, .cutOff: break
        }
        leave()
    }

    func deadlinePassed() {
        if let limit = ReachedLimit(deadlineOf: context.exchange) { RecordPhase.report(limit, &context) }
        perform(context.exchange.deadlinePassed(context.token))
    }

    func nextTurn() {
        isTurnScheduled = false
        perform(context.exchange.turnCame())
    }

    // MARK: Actions

    func perform(_ action: Action) {
        switch action {
        case .next, .wait: break
        case .readUsers(let credentials): readUsers(credentials)
        case .refuseUser(let credentials, let wasJudged): refuseUser(credentials, wasJudged: wasJudged)
        case .refuseAfterDelay: refuseAfterDelay()
        case .answerAsLastRecipient:
            let keeps = keepsConnection(behindOwn: false)
            return AnswerPhase.writeAsLastRecipient(keeping: keeps, &context)
                ? finish(keeping: keeps, stream.progress) : leave()
        case .answer(let answer):
            let keeps = keepsConnection(behindOwn: stream.request.head.upgradeRequested)
            return AnswerPhase.write(answer, keeping: keeps, &context)
                ? finish(keeping: keeps, stream.progress) : leave()
        case .connect(let authority, let tls):
            context.exchange.connect(to: authority, tls: tls)
            answerConnect()
        case .lookInside: lookInside()
        case .readHello: readHello()
        case .serveInside(let authority, let scheme): serveInside(authority, scheme)
        case .endConnect(let problem): endConnect(problem)
        case .openTunnel(let authority): openTunnel(to: authority)
        case .endTunnel: context.tunnel?.end(cut: true)
        case .collectBody:
            let next = WholeBody.goOn(&context, &share)
            if case .next = next { return run(from: .issue) }
            return perform(next)
        case .awaitToken(let refused):
            endUpstream()
            awaitToken(insteadOf: refused)
        case .send(let needsNewConnection): send(newConnection: needsNewConnection)
        case .sendSuspect(let needsNewConnection):
            context.token = context.oauthClient?.currentToken()
            send(newConnection: needsNewConnection)
        case .replay(let needsNewConnection):
            endUpstream()
            replay(newConnection: needsNewConnection)
        case .resumeAnswer:
            context.exchange.resume()
            AnswerPhase.writeHeldHead(&context)
            if let end = upstreamStream?.resumeBody() { upstreamEnded(end) }
        case .resumeUpload: if let end = upstreamStream?.resumeUpload() { upstreamEnded(end) }
        case .pass(let answer): pass(answer)
        case .fail(let problem): fail(problem)
        case .finish: finish()
        case .cut(let cause, let code):
            context.ledger.wasCut = true
            context.ledger.error = cause
            leave()
            stream.close(cut: true, code: code)
        case .leave(let closes):
            leave()
            if closes { stream.close(cut: false) }
        case .hangUp:
            leave()
            stream.closeConnection()
        }
        keepTime()
    }

    /// Sets the deadline and schedules the next turn, if the exchange needs them.
    func keepTime() {
        if context.exchange.pause == .turn, !isTurnScheduled {
            isTurnScheduled = true
            shard.loop.atNextTurn(self)
        }
        guard let patience = context.exchange.takeNewTime() else { return }
        let timeout = timeout(of: patience)
        patience == .firstBytes ? stream.setIdleDeadline(after: timeout) : stream.setDeadline(after: timeout)
    }

    private func timeout(of patience: Exchange.Patience) -> Timeout {
        let isGRPC = context.exchange.request.isGRPC
        switch patience {
        case .none: return .off
        case .loginDelay: return Self.failedLoginDelay
        case .response: return context.upstream?.timeouts(isCall: isGRPC).response ?? .off
        case .firstBytes: return context.installed.headerTimeout
        // The program may send nothing for long in a gRPC stream, so the upstream's timeout for calls counts.
        case .requestBody where isGRPC: return context.upstream?.timeouts(isCall: true).idle ?? .off
        case .requestBody, .program, .tunnel: return context.installed.idleTimeout
        case .upstream: return context.upstream?.timeouts(isCall: context.exchange.mayBeSilent).idle ?? .off
        case .upstreamEnd: return Self.endingTimeout
        }
    }

    /// Longest pause between the upstream's last bytes, after the program ended its side and this end could not be
    /// passed on.
    private static let endingTimeout = Timeout(.milliseconds(500))

    // MARK: The end

    private func endUpstream() {
        upstreamStream?.cancel()
        upstreamStream = nil
    }

    private func fail(_ problem: Problem) {
        if context.sender.redirected != nil { return endConnect(problem) }
        if let limit = ReachedLimit(problem) { RecordPhase.report(limit, &context) }
        endUpstream()
        let keeps = keepsConnection(behindOwn: problem.closes || stream.request.head.upgradeRequested)
        AnswerPhase.write(problem, keeping: keeps, &context) ? finish(keeping: keeps, stream.progress) : leave()
    }

    private func pass(_ answer: HeldAnswer) {
        if context.ledger.replay.isRefused {
            context.ledger.replay.obstacle = context.ledger.replay.obstacle ?? .noToken
        }
        AnswerPhase.writeHead(answer.head, stream.progress, &context)
        if !answer.body.isEmpty {
            AnswerPhase.noteSent(answer.body.count, &context)
            guard stream.write(answer.body.span, .all) != nil else { return leave() }
        }
        finish(trailers: answer.trailers)
    }

    /// Whether the program's connection stays open after an answer of the proxy.
    private func keepsConnection(behindOwn closes: Bool) -> Bool {
        let progress = stream.progress
        return context.exchange.keepsConnection(
            behindOwn: closes, isRequestComplete: progress.isRequestComplete, mustClose: progress.mustClose)
    }

    /// Finishes a request whose whole answer has been written.
    func finish(trailers: [(name: [UInt8], value: [UInt8])] = []) {
        let progress = stream.progress
        let keeps = context.exchange.keepsConnection(isRequestComplete: progress.isRequestComplete)
        finish(trailers: trailers, keeping: keeps, progress)
    }

    private func finish(
        trailers: [(name: [UInt8], value: [UInt8])] = [], keeping: Bool, _ progress: StreamProgress
    ) {
        settle(progress)
        stream.finish(trailers: trailers, keepsOpen: keeping)
    }

    /// Ends all work for a program that gets no further bytes.
    func leave() {
        waitNumber += 1
        tokenWait?.cancel()
        if let tunnel = context.tunnel { return tunnel.end(cut: true) }
        upstreamStream?.cancel()
        dialAttempt?.cancel()
        settle(stream.progress)
    }

    /// Counts and logs the request, and drops its state. Called after every outcome.
    func settle(_ progress: StreamProgress) {
        if progress.hasProgramEnded { shard.endedPrograms.remove(self) }
        RecordPhase.run(&context, progress)
        upstreamStream = nil
        context.settle()
    }
}
