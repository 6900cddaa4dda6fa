import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports

// Events of the upstream's stream. They run the phases from *edit head* to *answer*.
extension Forwarder: UpstreamStreamDelegate {
    // MARK: The request

    /// Sends the request to its upstream, for the first time or again.
    /// - Parameter newConnection: whether only a new connection may be used.
    func send(newConnection: Bool) {
        if let rule = context.admitted.rule, rule.answersHere, let settings = rule.settings.metadata {
            return perform(MetadataPhase.answer(settings, &context))
        }
        guard let destination = context.admitted.destination, let to = context.upstream else {
            return perform(.fail(Problem(.internalError)))
        }
        if context.exchange.isReplay || context.exchange.attempts.renewals > 0 {
            guard stream.rewindBody() else {
                let error = TransportError(.internal, message: "a part of the request's body is gone")
                return perform(.fail(Problem(error)))
            }
            context.ledger.replay.wasMade = context.exchange.isReplay
        }
        if context.token != nil {
            context.ledger.injection = context.exchange.attempts.hasNewToken ? .replayed : .injected
        }
        var request = UpstreamRequest(destination.origin, context.exchange.request, needsNewConnection: newConnection)
        let user = context.admitted.caller.user
        if let bond, bond.user != user { self.bond = nil }
        if bond == nil, ConnectionLogin.isIn(stream.request) { bond = CarrierBond(user: user) }
        request.bond = bond
        context.exchange.ask()
        context.ledger.times.ask(shard.loop.now)
        context.ledger.isSent = true
        keepTime()
        let end = to.begin(request, for: self) {
            upstreamStream = $0
            if context.span != nil { context.ledger.times.isHTTP2 = $0.isHTTP2 }
        }
        if let end { upstreamEnded(end) }
    }

    /// Sends the request once more. If it carried a token, it gets the current token: the former may have expired (rules 1
    /// and 7). If no token is valid, the request waits for one first.
    func replay(newConnection: Bool) {
        if context.token != nil, let upstream = context.upstream {
            guard let token = upstream.currentToken(of: context.oauthClient) else { return awaitToken(insteadOf: nil) }
            context.token = token
        }
        send(newConnection: newConnection)
    }

    var isWanted: Bool { !stream.progress.hasProgramEnded }

    var hasTokenEnded: Bool { context.token?.isExpired(at: .now) ?? false }

    func upstreamConnected(isReused: Bool) {
        context.ledger.times.connect(shard.loop.now, isReused: isReused)
        if !context.admitted.entries.isEmpty { context.ledger.gaveCredential = true }
    }

    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
        EditHeadPhase.run(&context, form, to: &output)
    }

    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep {
        let step = context.exchange.isSwitched ? takeSwitched(into: &bytes) : takeBody(into: &bytes)
        keepTime()
        return step
    }

    private func takeBody(into bytes: inout MutableSpan<UInt8>) -> UploadStep {
        let reading: BodyReading
        do throws(MessageError) { reading = try stream.readBody(into: &bytes) } catch {
            return stop(Problem(error, inBody: true))
        }
        if let limit = context.installed.settings.maxBodyBytes, stream.progress.bodyTaken > limit {
            return stop(Problem(.bodyTooLarge))
        }
        switch reading {
        case .bytes(let count):
            context.exchange.bodyAsked(isThere: true)
            return .bytes(count)
        case .wait:
            context.exchange.bodyAsked(isThere: false)
            return .wait
        case .end: return .end
        case .cut: return stop(Problem(.bodyCut))
        case .gone:
            context.exchange.programGone()
            return .abort
        }
    }

    private func stop(_ problem: Problem) -> UploadStep {
        context.exchange.stop(problem)
        return .abort
    }

    /// Takes the program's bytes of an upgraded connection.
    private func takeSwitched(into bytes: inout MutableSpan<UInt8>) -> UploadStep {
        switch try? stream.readBody(into: &bytes) {
        case .bytes(let count):
            context.ledger.bytesSwitched += UInt64(count)
            RecordPhase.bytesPassed(context, sent: UInt64(count))
            context.exchange.pieceCame()
            return .bytes(count)
        case .wait: return .wait
        case .end, .cut, nil:
            // If the upstream can't be told of this end, the exchange stops once the upstream sends nothing for 500 ms.
            context.exchange.programEndedItsSide(isPassedOn: upstreamStream?.endsBySides ?? false)
            return .end
        case .gone:
            context.exchange.programGone()
            return .abort
        }
    }

    var mayReplay: Bool { context.exchange.mayReplay && stream.progress.canRewind }

    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] { EditHeadPhase.trailers(context) }

    // MARK: The answer

    func upstreamAnswered(_ answer: borrowing ResponseHead) -> Bool {
        defer { keepTime() }
        let progress = stream.progress
        let findings: Exchange.Findings
        do throws(Problem) { findings = try JudgePhase.run(&context, answer, progress) } catch {
            context.exchange.stop(error)
            return false
        }
        let verdict = context.exchange.judge(answer, findings)
        context.ledger.replay.obstacle = verdict == .forward ? context.exchange.obstacle(findings) : nil
        switch verdict {
        case .forward: AnswerPhase.writeHead(answer, progress, &context)
        case .forwardInterim: AnswerPhase.writeInterim(answer, context)
        case .read: break
        case .switchProtocols: return AnswerPhase.switchProtocols(answer, &context)
        case .stop: return false
        }
        return true
    }

    func answerRoom() -> Int {
        let room = stream.answerRoom()
        if room == 0 { context.exchange.roomIsGone() }
        return room
    }

    func mayReadAhead() -> Bool { stream.mayReadAhead() }

    func upstreamSent(_ body: Span<UInt8>) -> BodyTaking {
        let taking = AnswerPhase.write(body, &context, &share)
        keepTime()
        return taking
    }

    /// Ends the output to the program. The other direction continues.
    func upstreamEndedItsSide() {
        context.exchange.upstreamEndedItsSide()
        stream.endOutput()
        keepTime()
    }

    func upstreamEnded(_ end: UpstreamEnd) {
        upstreamStream = nil
        // Not failures: another attempt follows `withheld` and `http2Missing`; the proxy itself caused `aborted`.
        if let error = end.error, ![.withheld, .http2Missing, .aborted].contains(error.kind) {
            RecordPhase.report(error, &context)
        }
        let isTokenRefused = context.exchange.request.isGRPC && JudgePhase.isTokenRefused(by: end, &context)
        let canReplay = (end.error != nil || isTokenRefused) && stream.progress.canRewind
        let action = context.exchange.ended(
            end, isTokenRefused: isTokenRefused, canReplay: canReplay, token: context.token)
        if case .finish = action { finish(trailers: end.trailers) } else { perform(action) }
    }
}

extension UpstreamRequest {
    init(_ origin: Origin, _ request: Exchange.Request, needsNewConnection: Bool) {
        self.init(origin: origin)
        isHead = request.isHead
        expectsContinue = request.expectsContinue
        isGRPC = request.isGRPC
        self.needsNewConnection = needsNewConnection
        upload =
            switch request.framing {
            case .length(let length) where length > 0: .length(length)
            case .chunked: .chunked
            default: .none
            }
        offersUpgrade = request.offersUpgrade
    }
}
