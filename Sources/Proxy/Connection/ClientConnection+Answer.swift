import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

// What libcurl reports, and what of it the client sees.
extension ClientConnection: TransferDelegate {
    /// More interim answers than this are refused.
    private static let maxInterim = 32
    private static let maxTrailerBytes = 16 * 1024

    // MARK: Head

    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool {
        if isAnswerHeadComplete { return takeTrailer(headerLine) }
        do throws(MessageError) {
            guard try answer.append(line: headerLine, allowHTTP2: transfer.isHTTP2) else { return true }
        } catch {
            return refuse(.malformedResponse)
        }
        return takeHead()
    }

    private func takeHead() -> Bool {
        let isSuspect = isTokenSuspect()
        if answer.status == 401, !isSuspect, isPersonNeeded {
            return refuse(Problem(.needsAuthentication, client: clientName, signIn: shard.observer.signIn))
        }
        let verdict = exchange.judge(
            status: answer.status, isInterim: answer.isInterim, isTokenRefused: isSuspect,
            canSendAgain: !body.isSpent)
        switch verdict {
        case .forward:
            isAnswerHeadComplete = true
            // The upstream still waits for a body that was announced to it: its connection is of no use any more.
            if exchange.expectsContinue, !exchange.isRequestComplete { transfer?.forbidReuse() }
            if answer.framing == .none || answer.framing == .length(0), !answer.isHTTP2 { transfer?.expectNoBody() }
            if answer.framing == .untilClose { transfer?.expectClose() }
            writeHead()
        case .forwardInterim, .dropInterim:
            interimCount += 1
            guard interimCount <= Self.maxInterim else { return refuse(.malformedResponse) }
            if verdict == .forwardInterim { writeInterim() }
            answer.reset(requestWasHead: exchange.isHead)
            setDeadline(.response, after: upstream?.responseTimeout ?? .off)
            return true
        case .discard:
            isAnswerHeadComplete = true
            held = HeldBody()
            // The rest of the body would go to an upstream that has refused it, and could not be sent again.
            guard exchange.isRequestComplete else {
                held?.isWhole = exchange.isHead || answer.framing == .none || answer.framing == .length(0)
                stopTransfer()
                ended(nil)
                return false
            }
        case .switchProtocols: return switchProtocols()
        case .refuse(let problem): return refuse(problem)
        }
        setDeadline(.upstreamIdle, after: upstream?.idleTimeout ?? .off)
        return exchange.isDiscardingAnswer || goesOnAfter(0)
    }

    /// libcurl does not see that an answer is whole while a request's body is still to be sent: over HTTP/2, or after
    /// HEAD, it would wait for ever. Ends it here when `count` more bytes make it whole.
    private func goesOnAfter(_ count: Int) -> Bool {
        guard exchange.hasBody, let transfer else { return true }
        answerTaken += UInt64(count)
        switch exchange.answerFraming {
        case .none: guard exchange.isHead || transfer.isHTTP2 else { return true }
        case .length(let length): guard transfer.isHTTP2, answerTaken >= length else { return true }
        case .chunked, .untilClose: return true
        }
        stopTransfer()
        finishRequest(keeping: exchange.keepsConnection)
        return false
    }

    /// Tells the token's keeper what the answer says of it.
    /// - Returns: whether it is a 401 that a newer token may cure.
    private func isTokenSuspect() -> Bool {
        guard let token, let upstream else { return false }
        let isReplay = exchange.isReplayed
        switch answer.status {
        case 401:
            guard let saysInvalid = tokenRefusal else { return false }
            return upstream.refused(token, saysInvalid: saysInvalid, isReplay: isReplay)
        case 101, 200..<500: upstream.accepted(token, isReplay: isReplay)
        // What comes before a server has looked at the token says nothing.
        default: break
        }
        return false
    }

    /// The token is refused, and its session is over: nobody is helped by the 401 who can be told to sign in.
    private var isPersonNeeded: Bool {
        guard token != nil, exchange.replaysUnauthorized, upstream?.client?.awaitsPerson == true else { return false }
        return tokenRefusal != nil
    }

    private var clientName: String { upstream?.settings.client ?? "" }

    /// Rule 7: no challenge at all, or a Bearer one without an error or with `invalid_token` (RFC 6750, section 3.1).
    /// `nil`: something else is amiss; else whether it says `invalid_token`.
    private var tokenRefusal: Bool? {
        let line = answer.bytes
        let bytes = line.span
        var values: [[UInt8]] = []
        for field in answer.fields where field.known == .wwwAuthenticate {
            values.append(Array(bytes[field.value].text.utf8))
        }
        guard Challenge.refuseToken(values) else { return nil }
        return (Challenge.parse(values) ?? []).contains { challenge in
            challenge.scheme == "bearer" && challenge.value(of: "error") == "invalid_token"
        }
    }

    /// The answer must not reach the client: ends the transfer and says so instead.
    func refuse(_ problem: Problem) -> Bool {
        stopTransfer()
        fail(problem)
        return false
    }

    private func writeHead() {
        exchange.answer(status: answer.status, framing: answer.framing)
        status = answer.status
        let before = output.count
        answer.write(to: &output, addressMap)
        output.append(answer.isHTTP2 ? "Via: 2 heimdallr-proxy\r\n" : "Via: 1.1 heimdallr-proxy\r\n")
        if exchange.answerFraming == .chunked { output.append("Transfer-Encoding: chunked\r\n") }
        if !exchange.clientKeepsAlive || exchange.endsByClose || shard.isDraining {
            output.append("Connection: close\r\n")
            exchange.clientKeepsAlive = false
        } else if exchange.isHTTP10 {
            output.append("Connection: keep-alive\r\n")
        }
        output.append("\r\n")
        bytesSent += UInt64(output.count - before)
        scheduleFlush()
    }

    private func writeInterim() {
        answer.write(to: &output, addressMap)
        output.append("\r\n")
        scheduleFlush()
    }

    // MARK: Body

    func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep {
        guard isAnswerHeadComplete else { return .abort }
        if exchange.isSwitched { return passOn(body) }
        if exchange.isDiscardingAnswer {
            guard hasShareLeft else { return waitForTurn() }
            return held?.append(body) ?? false ? .taken : .abort
        }
        if output.count > Self.highWater {
            isPaused = true
            waitForClient()
            return .pause
        }
        guard hasShareLeft else { return waitForTurn() }
        setDeadline(.upstreamIdle, after: upstream?.idleTimeout ?? .off)
        return takeBody(body) ? .taken : .abort
    }

    private func takeBody(_ body: Span<UInt8>) -> Bool {
        answer.framing == .chunked ? takeChunks(body) : pass(body)
    }

    /// Reads what libcurl has only counted: it takes sizes with spaces behind them, lines that end in a bare LF, and
    /// throws away what follows the last chunk.
    private func takeChunks(_ bytes: Span<UInt8>) -> Bool {
        var index = 0
        while true {
            let step: ChunkedDecoder.Step
            do throws(MessageError) { step = try answerDecoder.next(bytes, from: index) } catch { return false }
            switch step {
            case .needMore: return true
            case .data(let range, let consumed):
                guard pass(bytes[range]) else { return false }
                index = consumed
            case .end(let consumed):
                if consumed < bytes.count { transfer?.forbidReuse() }
                return true
            }
        }
    }

    /// Writes a piece of content to the client.
    private func pass(_ body: Span<UInt8>) -> Bool {
        let size = body.count
        if exchange.answerFraming == .chunked {
            output.append(hexadecimal: UInt64(size))
            output.append("\r\n")
            write(body: body)
            guard phase == .exchanging else { return false }
            output.append("\r\n")
        } else {
            write(body: body)
            guard phase == .exchanging else { return false }
        }
        bytesSent += UInt64(size)
        return goesOnAfter(size)
    }

    private func takeTrailer(_ line: Span<UInt8>) -> Bool {
        // What is dropped counts, too.
        trailerBytes += line.count
        guard trailerBytes <= Self.maxTrailerBytes else { return false }
        guard !exchange.isDiscardingAnswer else { return true }
        do throws(MessageError) {
            switch try ResponseTrailer.check(line: line) {
            case .field(let name, let value):
                if answer.connectionNames(line[name]) { return true }
                trailers.append(line[name])
                trailers.append(": ")
                trailers.append(line[value])
                trailers.append("\r\n")
            case .forbidden, .end: break
            }
            return true
        } catch {
            return false
        }
    }

    // MARK: Request body

    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep {
        if exchange.upgrade != nil { return passOn(into: &upload) }
        while !body.isDone {
            if mayRead, !exchange.isRequestComplete, !body.isSatisfied(by: input, room: upload.count) {
                fill(limit: 64 * 1024)
                guard phase == .exchanging else { return .abort }
            }
            let count: Int
            do throws(MessageError) { count = try body.take(from: &input, into: &upload) } catch {
                _ = refuse(Problem(inBody: error))
                return .abort
            }
            if body.isDone { exchange.isRequestComplete = true }
            if let limit = shard.settings.maxBodyBytes, body.taken > limit {
                _ = refuse(.bodyTooLarge)
                return .abort
            }
            if count > 0 { return sending(count) }
            if body.isDone { break }
            if mayRead { continue }
            return waitForBody()
        }
        return .end
    }

    private func sending(_ count: Int) -> UploadStep {
        if exchange.isAnswered {
            setDeadline(.upstreamIdle, after: upstream?.idleTimeout ?? .off)
        } else {
            setDeadline(.response, after: upstream?.responseTimeout ?? .off)
        }
        return .bytes(count)
    }

    private func waitForBody() -> UploadStep {
        guard !hasEnded else {
            _ = refuse(.bodyCut)
            return .abort
        }
        isUploadWaiting = true
        if !exchange.isAnswered { setDeadline(.requestBody, after: shard.idleTimeout) }
        return .wait
    }

    // MARK: End

    func transferEnded(_ transfer: Transfer, error: TransportError?) {
        self.transfer = nil
        guard phase == .exchanging else { return }
        if let error, error.kind != .withheld, let upstream { shard.observer.transportFailed(upstream.name, error) }
        ended(error)
        readHead()
    }

    private func ended(_ error: TransportError?) {
        switch exchange.ended(error, isHeadComplete: isAnswerHeadComplete) {
        case .complete: finishAnswer()
        case .resend: sendAgain()
        case .replay:
            guard let upstream, let client = upstream.client else { return fail(.internalError) }
            if error != nil { held?.isWhole = false }
            waitForToken(client, upstream, insteadOf: token)
        case .renew:
            guard let upstream, let client = upstream.client else { return fail(.internalError) }
            waitForToken(client, upstream)
        case .problem(let problem): fail(problem)
        case .cut: cut()
        }
    }

    /// The answer is whole, as far as anybody has looked.
    private func finishAnswer() {
        if answer.framing == .chunked, !takeDecodedTrailers() { return cut() }
        if exchange.answerFraming == .chunked {
            output.append("0\r\n")
            output.append(trailers.bytes)
            output.append("\r\n")
        }
        finishRequest(keeping: exchange.keepsConnection)
    }

    /// No new token is to be had, so the 401 that was held back is the answer after all.
    func passHeldAnswer(_ held: HeldBody) {
        self.held = nil
        writeHead()
        guard held.bytes.isEmpty || takeBody(held.bytes.span) else { return cut() }
        finishAnswer()
    }

    /// On a fresh connection. The first try took its time: a token that has expired or been rejected meanwhile is not
    /// sent again (rule 1).
    private func sendAgain() {
        if token != nil, let upstream, let client = upstream.client {
            guard let current = upstream.currentToken() else { return waitForToken(client, upstream) }
            token = current
        }
        do throws(Problem) { try send(fresh: true) } catch { fail(error) }
    }
}

extension ResponseHead {
    /// Writes the status line and the fields that may pass, without the blank line.
    ///
    /// - Parameter map: only asked for when a field holds addresses.
    func write(to output: inout ByteBuffer, _ map: @autoclosure () -> AddressMap?) {
        let bytes = self.bytes.span
        output.append("HTTP/1.1 ")
        output.append(decimal: UInt64(status))
        output.append(byte: UInt8(ascii: " "))
        output.append(bytes[reason])
        output.append("\r\n")
        for field in fields where !field.isHopByHop {
            if RewrittenFields.ofAnswers & field.known.bit != 0, let map = map() {
                RewrittenFields.append(field, of: bytes, map, to: &output)
                continue
            }
            output.append(bytes[field.name])
            output.append(": ")
            output.append(bytes[field.value])
            output.append("\r\n")
        }
    }
}
