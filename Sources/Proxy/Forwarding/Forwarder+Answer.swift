import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

// Passes the upstream's answer to the client.
extension Forwarder {
    // MARK: Head

    func upstreamAnswered(_ answer: borrowing ResponseHead) -> Bool {
        if !answer.isInterim { current.ledger.times.answer(connection.now) }
        let wantsNonce = takesNonce(answer)
        let isSuspect = !wantsNonce && isTokenSuspect(answer)
        if answer.status == 401, !isSuspect, !wantsNonce, isPersonNeeded(answer) {
            let client = current.upstream?.rules.settings.client ?? ""
            return refuse(Problem(.needsAuthentication, client: client, signIn: shard.observer.signIn))
        }
        let verdict = current.exchange.judge(
            answer, isTokenRefused: isSuspect, wantsNonce: wantsNonce, canSendAgain: connection.canRewindBody)
        switch verdict {
        case .forward: writeHead(answer)
        case .forwardInterim: writeInterim(answer)
        case .dropInterim: break
        case .hold:
            // The rest of the body would go to an upstream that has refused it, and could not be sent again. The body
            // of a mere nonce request says nothing.
            guard connection.isRequestComplete, !wantsNonce else {
                let hasBody =
                    !current.exchange.request.isHead && answer.framing != .none && answer.framing != .length(0)
                current.outbound?.cancel()
                current.outbound = nil
                current.exchange.holdEnd(trailers: [], isWhole: !hasBody)
                ended(nil, wasReused: false)
                return false
            }
        case .switchProtocols: return switchProtocols(answer)
        case .refuse(let problem): return refuse(problem)
        }
        keepTime()
        return true
    }

    /// Reports the answer to the token's client.
    /// - Returns: whether a newer token may cure a 401.
    private func isTokenSuspect(_ answer: borrowing ResponseHead) -> Bool {
        guard let token = current.token, let upstream = current.upstream else { return false }
        let isReplay = current.exchange.isReplayed
        switch answer.status {
        case 401:
            guard let saysInvalid = Self.tokenRefusal(answer, of: token) else { return false }
            return upstream.refused(
                token, of: current.client, saysInvalid: saysInvalid, isReplay: isReplay)
        case 101, 200..<500: upstream.accepted(token, of: current.client, isReplay: isReplay)
        // An answer from before the token check says nothing.
        default: break
        }
        return false
    }

    /// The upstream refused the token, and the session is over. The client gets the sign-in hint in place of the 401.
    private func isPersonNeeded(_ answer: borrowing ResponseHead) -> Bool {
        guard let token = current.token, current.exchange.request.replaysUnauthorized,
            current.client?.awaitsPerson == true
        else { return false }
        return Self.tokenRefusal(answer, of: token) != nil
    }

    /// Rule 7: no challenge, or one of the token's scheme without an error or with `invalid_token` (RFC 6750, section
    /// 3.1).
    /// - Returns: whether the answer says `invalid_token`; `nil`: another error.
    private static func tokenRefusal(_ answer: borrowing ResponseHead, of token: AccessToken) -> Bool? {
        let values = challenges(answer)
        let scheme = token.binding == nil ? Challenge.bearer : Challenge.dpop
        guard Challenge.refuseToken(values, of: scheme) else { return nil }
        return Challenge.sayInvalidToken(values, of: scheme)
    }

    /// Ends the exchange: the client gets `problem` in place of the answer.
    func refuse(_ problem: Problem) -> Bool {
        fail(problem)
        return false
    }

    private func writeHead(_ answer: borrowing ResponseHead) {
        let framing = current.exchange.answer(
            status: answer.status, framing: answer.framing, isRequestComplete: connection.isRequestComplete,
            mustClose: connection.mustClose)
        current.ledger.status = answer.status
        let request = current.exchange.request
        let before = connection.outputCount
        connection.write { output in
            answer.write(to: &output, current.admitted.addressMap)
            output.append(answer.isHTTP2 ? "Via: 2 heimdallr-proxy\r\n" : "Via: 1.1 heimdallr-proxy\r\n")
            if framing == .chunked { output.append("Transfer-Encoding: chunked\r\n") }
            if !request.keepsAlive {
                output.append("Connection: close\r\n")
            } else if request.isHTTP10 {
                output.append("Connection: keep-alive\r\n")
            }
            output.append("\r\n")
        }
        current.ledger.bytesSent += UInt64(connection.outputCount - before)
    }

    private func writeInterim(_ answer: borrowing ResponseHead) {
        connection.write { output in
            answer.write(to: &output, current.admitted.addressMap)
            output.append("\r\n")
        }
    }

    // MARK: Body

    func upstreamSent(_ body: Span<UInt8>, keepsRest: Bool) -> BodyTaking {
        if connection.isFull { return waitForRoom(after: 0) }
        guard hasShareLeft else { return waitForTurn() }
        if let goesOn = current.exchange.hold(body) { return goesOn ? .taken : .abort }
        keepTime()
        // A chunk must be taken whole: its length goes out first.
        guard keepsRest, current.exchange.answerFraming != .chunked else { return write(body) ? .taken : .abort }
        guard let count = connection.write(some: body) else { return .abort }
        noteSent(count)
        return count == body.count ? .taken : waitForRoom(after: count)
    }

    /// Writes a piece of content to the client.
    private func write(_ body: Span<UInt8>) -> Bool {
        noteSent(body.count)
        guard current.exchange.answerFraming == .chunked else { return connection.write(body: body) }
        connection.write {
            $0.append(hexadecimal: UInt64(body.count))
            $0.append("\r\n")
        }
        guard connection.write(body: body) else { return false }
        connection.write { $0.append("\r\n") }
        return true
    }

    private func noteSent(_ count: Int) {
        current.ledger.bytesSent += UInt64(count)
        if current.exchange.isSwitched { shard.bytesPassed(self, received: UInt64(count)) }
    }

    // MARK: End

    func upstreamEnded(_ error: TransportError?, wasReused: Bool) {
        let finished = current.outbound
        current.outbound = nil
        // A request that takes another route has not failed.
        if let error, error.kind != .withheld, error.kind != .http2Missing { report(error) }
        if current.exchange.isRefused {
            current.exchange.holdEnd(trailers: finished?.trailers ?? [], isWhole: error == nil)
        } else if error == nil, current.exchange.answerFraming == .chunked {
            connection.write { $0.append(lastChunk: finished?.trailers ?? []) }
        }
        ended(error, wasReused: wasReused)
    }

    /// Passes the held 401 on: no new token came.
    func pass(_ answer: HeldAnswer) {
        writeHead(answer.head)
        guard answer.body.isEmpty || write(answer.body.span) else { return }
        if current.exchange.answerFraming == .chunked { connection.write { $0.append(lastChunk: answer.trailers) } }
        finish()
    }
}
