import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

// What comes back from the upstream, and what of it the client sees.
extension ClientConnection: UpstreamExchangeDelegate {
    // MARK: Head

    func upstreamAnswered(_ answer: borrowing ResponseHead) -> Bool {
        let isSuspect = isTokenSuspect(answer)
        if answer.status == 401, !isSuspect, isPersonNeeded(answer) {
            return refuse(Problem(.needsAuthentication, client: clientName, signIn: shard.observer.signIn))
        }
        let verdict = exchange.judge(
            status: answer.status, isInterim: answer.isInterim, isTokenRefused: isSuspect,
            canSendAgain: !body.isSpent)
        switch verdict {
        case .forward:
            isAnswerHeadComplete = true
            writeHead(answer)
        case .forwardInterim, .dropInterim:
            if verdict == .forwardInterim { writeInterim(answer) }
            if answer.status == 100 { exchange.wasToldToContinue = true }
            awaitAnswer()
            return true
        case .discard:
            isAnswerHeadComplete = true
            held = HeldAnswer(copy answer)
            // The rest of the body would go to an upstream that has refused it, and could not be sent again.
            guard exchange.isRequestComplete else {
                held?.isWhole = exchange.isHead || answer.framing == .none || answer.framing == .length(0)
                cancelOutbound()
                ended(nil, wasReused: false)
                return false
            }
        case .switchProtocols: return switchProtocols(answer)
        case .refuse(let problem): return refuse(problem)
        }
        setDeadline(.upstreamIdle, after: upstream?.idleTimeout ?? .off)
        return true
    }

    /// Tells the token's keeper what the answer says of it.
    /// - Returns: whether it is a 401 that a newer token may cure.
    private func isTokenSuspect(_ answer: borrowing ResponseHead) -> Bool {
        guard let token, let upstream else { return false }
        let isReplay = exchange.isReplayed
        switch answer.status {
        case 401:
            guard let saysInvalid = Self.tokenRefusal(answer) else { return false }
            return upstream.refused(token, saysInvalid: saysInvalid, isReplay: isReplay)
        case 101, 200..<500: upstream.accepted(token, isReplay: isReplay)
        // What comes before a server has looked at the token says nothing.
        default: break
        }
        return false
    }

    /// The token is refused, and its session is over: nobody is helped by the 401 who can be told to sign in.
    private func isPersonNeeded(_ answer: borrowing ResponseHead) -> Bool {
        guard token != nil, exchange.replaysUnauthorized, upstream?.client?.awaitsPerson == true else { return false }
        return Self.tokenRefusal(answer) != nil
    }

    private var clientName: String { upstream?.settings.client ?? "" }

    /// Rule 7: no challenge at all, or a Bearer one without an error or with `invalid_token` (RFC 6750, section 3.1).
    /// `nil`: something else is amiss; else whether it says `invalid_token`.
    private static func tokenRefusal(_ answer: borrowing ResponseHead) -> Bool? {
        let line = answer.bytes
        let bytes = line.span
        var values: [[UInt8]] = []
        for field in answer.fields where field.known == .wwwAuthenticate {
            values.append(Array(bytes[field.value].text.utf8))
        }
        guard Challenge.refuseToken(values) else { return nil }
        return Challenge.sayInvalidToken(values)
    }

    /// The answer must not reach the client: ends the exchange and says so instead.
    func refuse(_ problem: Problem) -> Bool {
        cancelOutbound()
        fail(problem)
        return false
    }

    private func writeHead(_ answer: borrowing ResponseHead) {
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

    private func writeInterim(_ answer: borrowing ResponseHead) {
        answer.write(to: &output, addressMap)
        output.append("\r\n")
        scheduleFlush()
    }

    // MARK: Body

    func upstreamSent(_ body: Span<UInt8>) -> BodyStep {
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
        return pass(body) ? .taken : .abort
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
        return true
    }

    // MARK: Request body

    func takeUpload(into upload: inout MutableSpan<UInt8>) -> UploadStep {
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
            awaitAnswer()
        }
        return .bytes(count)
    }

    private func waitForBody() -> UploadStep {
        guard !hasEnded else {
            _ = refuse(.bodyCut)
            return .abort
        }
        isUploadWaiting = true
        if !exchange.isAnswered { awaitAnswer() }
        return .wait
    }

    /// Whose turn it is: the client's, that has not sent all of its body, or the upstream's.
    private func awaitAnswer() {
        if isUploadWaiting, body.taken > 0 || !exchange.awaitsContinue {
            setDeadline(.requestBody, after: shard.idleTimeout)
        } else {
            setDeadline(.response, after: upstream?.responseTimeout ?? .off)
        }
    }

    // MARK: End

    func upstreamEnded(_ error: TransportError?, wasReused: Bool) {
        let finished = outbound
        outbound = nil
        guard phase == .exchanging else { return }
        if let error, !error.isOurs, upstream != nil { report(error) }
        if error == nil, exchange.isDiscardingAnswer {
            held?.trailers = finished?.trailers ?? []
        } else if error == nil, exchange.answerFraming == .chunked {
            writeLastChunk(finished?.trailers ?? [])
        }
        ended(error, wasReused: wasReused)
        readHead()
    }

    private func ended(_ error: TransportError?, wasReused: Bool) {
        switch exchange.ended(error, isHeadComplete: isAnswerHeadComplete, canSendAgain: wasReused && !body.isSpent) {
        case .complete: finishRequest(keeping: exchange.keepsConnection)
        case .resend: sendAgain()
        case .replay:
            guard let upstream, let client = upstream.client else { return fail(.internalError) }
            if error != nil { held?.isWhole = false }
            waitForToken(client, upstream, insteadOf: token)
        case .renew:
            guard let upstream, let client = upstream.client else { return fail(.internalError) }
            waitForToken(client, upstream)
        case .sendByHTTP1:
            upstream?.noteLackOfHTTP2(shard.loop.now)
            do throws(Problem) { try send() } catch { fail(error) }
        case .problem(let problem): fail(problem)
        case .cut: cut()
        }
    }

    /// No new token is to be had, so the 401 that was held back is the answer after all.
    func passHeldAnswer(_ held: HeldAnswer) {
        self.held = nil
        writeHead(held.head)
        guard held.body.isEmpty || pass(held.body.span) else { return cut() }
        if exchange.answerFraming == .chunked { writeLastChunk(held.trailers) }
        finishRequest(keeping: exchange.keepsConnection)
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

extension TransportError {
    /// Nothing has failed: the request goes another way.
    fileprivate var isOurs: Bool { kind == .withheld || kind == .http2Missing }
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
