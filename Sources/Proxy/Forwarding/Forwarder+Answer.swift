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
        if !answer.isInterim { current.ledger.times.answer(shard.loop.now) }
        let wantsNonce = takesNonce(answer)
        let isSuspect = !wantsNonce && isTokenSuspect(answer)
        if answer.status == 401, !isSuspect, !wantsNonce, isPersonNeeded(answer) {
            let client = current.upstream?.rules.settings.client ?? ""
            return refuse(Problem(.needsAuthentication, client: client, signIn: shard.observer.signIn))
        }
        let verdict = current.exchange.judge(
            answer, isTokenRefused: isSuspect, wantsNonce: wantsNonce, canSendAgain: stream.progress.canRewind)
        switch verdict {
        case .forward: writeHead(answer)
        case .forwardInterim: writeInterim(answer)
        case .dropInterim: break
        case .hold:
            // The rest of the body would go to an upstream that has refused it, and could not be sent again. The body
            // of a mere nonce request says nothing.
            guard stream.progress.isRequestComplete, !wantsNonce else {
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
            status: answer.status, framing: answer.framing, isRequestComplete: stream.progress.isRequestComplete,
            mustClose: stream.progress.mustClose)
        current.ledger.status = answer.status
        let head = AnswerHead(answer.status, framing, keepsOpen: current.exchange.request.keepsAlive)
        let bytes = answer.bytes
        let count = stream.answer(head, reason: bytes.span[answer.reason]) { output in
            answer.writeFields(to: &output, current.admitted.addressMap)
            output.append(answer.isHTTP2 ? "Via: 2 heimdallr-proxy\r\n" : "Via: 1.1 heimdallr-proxy\r\n")
        }
        current.ledger.bytesSent += UInt64(count)
    }

    private func writeInterim(_ answer: borrowing ResponseHead) {
        let bytes = answer.bytes
        stream.answer(AnswerHead(answer.status), reason: bytes.span[answer.reason]) { output in
            answer.writeFields(to: &output, current.admitted.addressMap)
        }
    }

    // MARK: Body

    func upstreamSent(_ body: Span<UInt8>, keepsRest: Bool) -> BodyTaking {
        guard hasShareLeft else { return waitForTurn() }
        if let goesOn = current.exchange.hold(body) { return goesOn ? .taken : .abort }
        keepTime()
        guard let count = stream.write(body, keepsRest ? .part : .allOrNone) else {
            leave()
            return .abort
        }
        noteSent(count)
        guard count < body.count else { return .taken }
        current.isPaused = true
        return .partly(count)
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
        }
        ended(error, wasReused: wasReused, trailers: finished?.trailers ?? [])
    }

    /// Passes the held 401 on: no new token came.
    func pass(_ answer: HeldAnswer) {
        writeHead(answer.head)
        if !answer.body.isEmpty {
            noteSent(answer.body.count)
            guard stream.write(answer.body.span, .all) != nil else { return leave() }
        }
        finish(trailers: answer.trailers)
    }
}
