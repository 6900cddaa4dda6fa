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
        if let problem = signInProblem(answer, context) { return context.exchange.refuse(problem) }
        if context.token != nil {
            findings.wantsNonce = takesNonce(answer, &context)
            if !findings.wantsNonce { findings.isTokenRefused = isTokenSuspect(answer, &context) }
            if answer.status == 401, !findings.isTokenRefused, !findings.wantsNonce, isPersonNeeded(answer, &context) {
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
        case 101, 200..<500: upstream.accepted(token, of: context.client, isReplay: isReplay)
        // A 5xx may come from in front of the server that checks tokens.
        default: break
        }
        return false
    }

    /// The upstream refused the token, and the session is over. The client gets the sign-in hint in place of the 401.
    private static func isPersonNeeded(_ answer: borrowing ResponseHead, _ context: inout Context) -> Bool {
        guard let token = context.token, context.exchange.request.replaysUnauthorized,
            context.client?.awaitsPerson == true
        else { return false }
        return tokenRefusal(answer, of: token) != nil
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

    // MARK: An API that names its server itself

    /// Reports a refusal to the client of `client: auto`.
    /// - Returns: the answer in place of it, if a person's sign-in cures it.
    private static func signInProblem(_ answer: borrowing ResponseHead, _ context: Context) -> Problem? {
        guard let upstream = context.upstream, upstream.enrols, answer.status == 401 || answer.status == 403,
            let client = context.client
        else { return nil }
        let values = challenges(answer)
        let known = (Challenge.parse(values) ?? []).filter { [Challenge.bearer, Challenge.dpop].contains($0.scheme) }
        let bearer = known.first { $0.value(of: "error") != nil } ?? known.first
        // A 401 for another scheme, or a plain 403, is the program's own affair.
        guard bearer != nil || answer.status == 401 && values.isEmpty else { return nil }
        let challenge = ResourceChallenge(
            url: address(context, upstream), metadata: bearer?.value(of: "resource_metadata"),
            scope: bearer?.value(of: "scope"), error: bearer?.value(of: "error"),
            acrValues: bearer?.value(of: "acr_values"), maxAge: bearer?.value(of: "max_age"))
        if challenge.reason == .token, answer.status == 403 { return nil }
        client.challenged(challenge, hadToken: context.token != nil)
        guard answer.status == 401, challenge.reason == .authentication || context.token == nil else { return nil }
        return Problem(
            .needsAuthentication, client: upstream.rules.settings.client ?? "", signIn: context.shard.observer.signIn)
    }

    /// Address of the request at the API, without its query.
    private static func address(_ context: Context, _ upstream: Upstream) -> String {
        guard let destination = context.admitted.destination else { return "" }
        let origin = "\(destination.scheme.rawValue)://\(destination.authority)"
        let prefix = String(decoding: upstream.rules.pathPrefix, as: UTF8.self)
        guard case .path(let path) = context.admitted.target else { return origin + prefix }
        return context.stream.request.with { _, bytes in
            origin + prefix + bytes[path].text.prefix { $0 != "?" }
        }
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
