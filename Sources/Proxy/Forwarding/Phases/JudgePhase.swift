import Configuration
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

/// Finds out what an answer's head means for the token; `Exchange.judge` decides what follows.
enum JudgePhase {
    static func run(
        _ context: inout Context, _ answer: borrowing ResponseHead, _ progress: StreamProgress
    ) -> Exchange.Verdict {
        if !answer.isInterim { context.ledger.times.answer(context.shard.loop.now) }
        var findings = Exchange.Findings(
            canSendAgain: progress.canRewind, isRequestComplete: progress.isRequestComplete)
        if context.token != nil {
            findings.wantsNonce = takesNonce(answer, &context)
            if !findings.wantsNonce { findings.isTokenRefused = isTokenSuspect(answer, &context) }
            if answer.status == 401 || callRefuses(answer, context), !findings.isTokenRefused, !findings.wantsNonce,
                isPersonNeeded(answer, &context)
            {
                let client = context.upstream?.rules.settings.client ?? ""
                return context.exchange.refuse(
                    Problem(.needsAuthentication, client: client, signIn: context.shard.observer.signIn))
            }
        }
        return context.exchange.judge(answer, findings)
    }

    // MARK: Rule 7

    /// Reports the answer to the token's client.
    /// - Returns: whether a newer token may cure a 401.
    private static func isTokenSuspect(_ answer: borrowing ResponseHead, _ context: inout Context) -> Bool {
        guard let token = context.token, let upstream = context.upstream else { return false }
        let isReplay = context.exchange.attempts.isReplayed
        switch answer.status {
        case 401:
            guard let saysInvalid = tokenRefusal(answer, of: token) else { return false }
            return upstream.refused(token, of: context.client, saysInvalid: saysInvalid, isReplay: isReplay)
        case 200 where context.exchange.request.isGRPC:
            // Without a body the status is here, else in the trailers.
            guard let status = GRPCStatus.read(answer) else { return false }
            return isTokenSuspect(by: status, &context)
        case 101, 200..<500: upstream.accepted(token, of: context.client, isReplay: isReplay)
        // A 5xx may come from in front of the server that checks tokens.
        default: break
        }
        return false
    }

    /// Reports the status of a call of gRPC to the token's client. UNAUTHENTICATED says what a 401 with `invalid_token` says.
    /// - Returns: whether a newer token may cure it.
    private static func isTokenSuspect(by status: Int, _ context: inout Context) -> Bool {
        guard let token = context.token, let upstream = context.upstream else { return false }
        let isReplay = context.exchange.attempts.isReplayed
        switch GRPCStatus(rawValue: status) {
        case .unauthenticated:
            return upstream.refused(token, of: context.client, saysInvalid: true, isReplay: isReplay)
        // These may come from in front of the server that checks tokens.
        case .unavailable, .internal: break
        default: upstream.accepted(token, of: context.client, isReplay: isReplay)
        }
        return false
    }

    private static func callRefuses(_ answer: borrowing ResponseHead, _ context: Context) -> Bool {
        context.exchange.request.isGRPC && GRPCStatus.read(answer) == GRPCStatus.unauthenticated.rawValue
    }

    /// Takes the status of a call of gRPC from its trailers. The answer has passed, so the call is not sent again.
    static func judge(_ trailers: [(name: [UInt8], value: [UInt8])], _ context: inout Context) {
        guard context.ledger.grpcStatus == nil, let status = GRPCStatus.read(trailers) else { return }
        context.ledger.grpcStatus = status
        _ = isTokenSuspect(by: status, &context)
    }

    /// The upstream refused the token, and the session is over. The client gets the sign-in hint in place of the 401.
    private static func isPersonNeeded(_ answer: borrowing ResponseHead, _ context: inout Context) -> Bool {
        guard let token = context.token, context.exchange.request.replaysUnauthorized,
            context.client?.awaitsPerson == true
        else { return false }
        return answer.status != 401 || tokenRefusal(answer, of: token) != nil
    }

    /// A 401 refuses the token if it has no challenge, or if a challenge of the token's scheme has no error or `invalid_token`
    /// (RFC 6750, section 3.1).
    /// - Returns: `nil` if it refuses something else; else whether it says `invalid_token`.
    private static func tokenRefusal(_ answer: borrowing ResponseHead, of token: AccessToken) -> Bool? {
        let values = challenges(answer)
        let scheme = token.binding == nil ? Challenge.bearer : Challenge.dpop
        guard Challenge.refuseToken(values, of: scheme) else { return nil }
        return Challenge.sayInvalidToken(values, of: scheme)
    }

    private static func challenges(_ answer: borrowing ResponseHead) -> [[UInt8]] {
        let line = answer.bytes
        let bytes = line.span
        var values: [[UInt8]] = []
        for field in answer.fields where field.known == .wwwAuthenticate {
            values.append(Array(bytes[field.value].text.utf8))
        }
        return values
    }

    // MARK: Nonces (RFC 9449, section 9)

    private static let nonceField = Array(DPoPNonce.field.utf8)

    /// Stores an answer's nonce.
    /// - Returns: whether the answer is a 401 that only asks for the nonce.
    private static func takesNonce(_ answer: borrowing ResponseHead, _ context: inout Context) -> Bool {
        guard context.token?.binding != nil, let upstream = context.upstream,
            let destination = context.admitted.destination
        else { return false }
        let line = answer.bytes
        let bytes = line.span
        var nonce: String?
        for field in answer.fields where bytes[field.name].namesField(nonceField) {
            nonce = DPoPNonce.read(bytes[field.value])
        }
        guard let nonce else { return false }
        upstream.nonces.note(nonce, of: EditHeadPhase.hostField(context.admitted.asked, upstream, destination))
        return answer.status == 401 && Challenge.wantNonce(challenges(answer))
    }
}
