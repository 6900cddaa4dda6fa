import Configuration
import HTTPMessage
import HTTPServer
import Reactor
import WireText

/// Writes the upstream's answer, or an answer of the proxy, to the program.
enum AnswerPhase {
    // MARK: The upstream's answer

    static func writeHead(_ answer: borrowing ResponseHead, _ progress: StreamProgress, _ context: inout Context) {
        let ends = context.exchange.request.offersUpgrade && endsOffer(answer.status, context.stream)
        let framing = context.exchange.answer(
            status: answer.status, framing: answer.framing, isEventStream: isEventStream(answer),
            isRequestComplete: progress.isRequestComplete, mustClose: progress.mustClose || ends)
        context.ledger.status = answer.status
        // No replay follows an answer, so the kept bytes of a long upload can be freed.
        if !progress.isRequestComplete { context.stream.keepBody(upTo: 0) }
        let head = AnswerHead(answer.status, framing, keepsOpen: context.exchange.request.keepsAlive)
        let addsVia = context.admitted.rule?.settings.addsVia ?? true
        let count = write(answer, head, context) { output in
            guard addsVia else { return }
            output.append("Via: ")
            output.append(answer.isHTTP2 ? "2" : "1.1")
            output.append(" heimdallr-proxy\r\n")
        }
        context.ledger.bytesSent += UInt64(count)
    }

    /// Whether the answer is `text/event-stream`, alone or with parameters, and without a known end.
    private static func isEventStream(_ answer: borrowing ResponseHead) -> Bool {
        guard answer.framing == .chunked || answer.framing == .untilClose, let index = answer.index(of: .contentType)
        else { return false }
        let line = answer.bytes
        let value = line.span[answer.fields[index].value]
        guard value.count >= eventStream.count else { return false }
        return value.extracting(first: eventStream.count).equalsIgnoringCase(eventStream)
            && (value.count == eventStream.count || !ASCII.isTokenByte(value[eventStream.count]))
    }

    private static let eventStream = Array("text/event-stream".utf8)

    /// Writes the held head of a gRPC call's answer, if there is one (`Exchange.State.announced`).
    static func writeHeldHead(_ context: inout Context) {
        guard let answer = context.exchange.release() else { return }
        writeHead(answer.head, context.stream.progress, &context)
    }

    static func writeInterim(_ answer: borrowing ResponseHead, _ context: Context) {
        _ = write(answer, AnswerHead(answer.status), context) { _ in }
    }

    private static func write(
        _ answer: borrowing ResponseHead, _ head: AnswerHead, _ context: Context,
        _ more: (inout ByteBuffer) -> Void
    ) -> Int {
        let bytes = answer.bytes
        let map = RewrittenFields.isIn(answer) ? context.admitted.addressMap : nil
        let hidesDiscovery = context.admitted.rule?.settings.hidesDiscovery ?? false
        return context.stream.answer(head, reason: bytes.span[answer.reason]) { output in
            answer.writeFields(to: &output, map, hidesDiscovery: hidesDiscovery)
            more(&output)
        }
    }

    /// Whether an answer that is no 101 ends the connection of a program that offered an upgrade. A success ignores the
    /// offer, and leaves the connection as it was, unless bytes have come already: they could be a smuggled request.
    private static func endsOffer(_ status: Int, _ stream: any ProgramStream) -> Bool {
        !(200..<300).contains(status) || stream.hasInput(reading: true) != false
    }

    /// Passes an upgrade on (RFC 9110, section 7.8). The handshake is an ordinary request with its token. Then both
    /// bodies carry the bytes of the other protocol.
    ///
    /// Bytes sent before the 101 are not passed on: they could be a smuggled request (RFC 9931). For the same reason
    /// the connection closes after a refusal.
    /// - Returns: whether the exchange with the upstream continues.
    static func switchProtocols(_ answer: borrowing ResponseHead, _ context: inout Context) -> Bool {
        guard answer.upgrades, let offer = context.admitted.upgrade,
            let agreed = UpgradeList(answer.fields, in: answer.bytes.span),
            agreed.isCovered(by: offer)
        else {
            context.exchange.stop(Problem(.unaskedUpgrade))
            return false
        }
        guard let hasInput = context.stream.hasInput(reading: true) else {
            context.exchange.programGone()
            return false
        }
        guard !hasInput else {
            context.exchange.stop(Problem(.bytesBeforeUpgrade))
            return false
        }
        context.exchange.switchProtocols()
        context.ledger.status = 101
        _ = write(answer, AnswerHead(101), context) { output in
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(agreed.value)
            output.append("\r\n")
        }
        return true
    }

    /// Writes a piece of the answer's body, and before it the held head of a gRPC call's answer. If a 401 is held, the
    /// piece is kept with this 401.
    static func write(
        _ body: Span<UInt8>, _ context: inout Context, _ share: inout TurnShare
    ) -> BodyTaking {
        context.exchange.resume()
        guard share.takesMore(turn: context.shard.loop.now, now: .current()) else {
            context.exchange.shareIsSpent()
            return .partly(0)
        }
        if let goesOn = context.exchange.hold(body) { return goesOn ? .taken : .abort }
        if context.exchange.request.isGRPC {
            writeHeldHead(&context)
            JudgePhase.messageCame(&context)
        }
        // If no head was written, the program would read these bytes as a head.
        guard context.exchange.isAnswered else { return .abort }
        context.exchange.pieceCame()
        guard let count = context.stream.write(body, .part) else {
            context.exchange.programGone()
            return .abort
        }
        noteSent(count, &context)
        guard count < body.count else { return .taken }
        context.exchange.roomIsGone()
        return .partly(count)
    }

    static func noteSent(_ count: Int, _ context: inout Context) {
        context.ledger.bytesSent += UInt64(count)
        if context.exchange.isSwitched { RecordPhase.bytesPassed(context, received: UInt64(count)) }
    }

    // MARK: An answer of the proxy

    /// - Returns: `false` if the program is gone.
    static func write(_ problem: Problem, keeping: Bool, _ context: inout Context) -> Bool {
        let isGRPC = context.exchange.request.isGRPC
        context.ledger.note(problem, isGRPC: isGRPC)
        let rule = context.admitted.rule
        if let kind = rule?.settings.metadata?.kind {
            return write(MetadataPhase.answer(problem, kind), keeping: keeping, &context)
        }
        if isGRPC {
            context.exchange.statusCame(problem.row.grpcStatus)
            return writeOwn(
                Problem.statusOfCalls, Array("OK".utf8), [], keeping: keeping, &context, problem.appendCallFields)
        }
        let observer = context.shard.observer
        let isShown = observer.accessLog != nil || observer.keepsRequests
        let requestID = isShown ? RecordPhase.requestID(&context) : nil
        // Behind a malformed or unfinished request no body is read.
        let rpc = problem.closes || problem.oauthError != nil ? nil : JSONRPC.requestID(context.stream)
        let body = problem.document(
            client: rule?.settings.client, upstream: rule?.name, requestID: requestID, rpc: rpc)
        return writeOwn(problem.status, Array(problem.phrase.utf8), body, keeping: keeping, &context) { output in
            problem.appendFields(to: &output, isRPC: rpc != nil)
        }
    }

    /// Answers as the last recipient (Max-Forwards 0, RFC 9110, section 7.6.2). The answer to TRACE holds the request's
    /// head without secrets (section 9.3.8).
    /// - Returns: `false` if the program is gone.
    static func writeAsLastRecipient(keeping: Bool, _ context: inout Context) -> Bool {
        let isTrace = context.stream.request.head.methodKind == .trace
        var body = ByteBuffer()
        if isTrace { appendHead(context, to: &body) }
        context.ledger.status = 200
        return writeOwn(200, Array("OK".utf8), [UInt8](copying: body.bytes), keeping: keeping, &context) { output in
            if isTrace { output.append("Content-Type: message/http\r\n") }
            output.append("Cache-Control: no-store\r\n")
        }
    }

    /// Writes the answer to a token request, or of a metadata service. No cache may keep it.
    /// - Returns: `false` if the program is gone.
    static func write(_ answer: OwnAnswer, keeping: Bool, _ context: inout Context) -> Bool {
        context.ledger.status = answer.status
        let phrase = Array(ReasonPhrase.of(answer.status).utf8)
        return writeOwn(answer.status, phrase, answer.body, keeping: keeping, &context) { output in
            output.append(line: "Content-Type: ", Array(answer.type.utf8))
            output.append("Cache-Control: no-store\r\nPragma: no-cache\r\n")
            output.append(Array(answer.fields.utf8))
        }
    }

    private static func writeOwn(
        _ status: Int, _ reason: [UInt8], _ body: [UInt8], keeping: Bool, _ context: inout Context,
        _ fields: (inout ByteBuffer) -> Void
    ) -> Bool {
        let head = AnswerHead(status, keepsOpen: keeping, isOwn: true)
        var count = context.stream.answer(head, reason: reason.span) { output in
            fields(&output)
            output.append("Content-Length: ")
            output.append(decimal: UInt64(body.count))
            output.append("\r\n")
        }
        var isThere = true
        // Without a body, the head also ends the answer ("Trailers-Only" of gRPC).
        if !context.exchange.request.isHead, !body.isEmpty {
            isThere = context.stream.write(body.span, .all) != nil
            count += body.count
        }
        context.ledger.bytesSent = UInt64(count)
        return isThere
    }

    private static func appendHead(_ context: Context, to body: inout ByteBuffer) {
        context.stream.request.with { head, bytes in
            body.append(bytes[head.method])
            body.append(" ")
            body.append(bytes[head.target])
            body.append(head.version == .http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n")
            for field in head.fields where !isSecret(field, bytes) {
                body.append(field: bytes[field.name], bytes[field.value])
            }
            body.append("\r\n")
        }
    }

    private static func isSecret(_ field: Field, _ bytes: Span<UInt8>) -> Bool {
        [.authorization, .proxyAuthorization].contains(field.known) || bytes[field.name].equalsIgnoringCase(cookie)
    }

    private static let cookie = Array("cookie".utf8)
}
