import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports

/// Reads from an answer's head whether the token was accepted. `Exchange.judge` decides the next step.
enum JudgePhase {
    /// - Throws: the problem that replaces the answer, for example if a person has to sign in.
    static func run(
        _ context: inout Context, _ answer: borrowing ResponseHead, _ progress: StreamProgress
    ) throws(Problem) -> Exchange.Findings {
        let isCall = context.exchange.request.isGRPC && !answer.isInterim
        if !answer.isInterim { context.ledger.times.answer(context.shard.loop.now) }
        var findings = Exchange.Findings(
            canReplay: progress.canRewind, isRequestComplete: progress.isRequestComplete)
        if isCall { findings.callStatus = GRPCStatus(answer) }
        // Only a next proxy answers 407 (RFC 9110, section 15.5.8). The program would take it for this proxy's.
        if answer.status == 407, let refusal = nextProxyRefusal(answer, context) {
            let error = TransportError(refusal)
            RecordPhase.report(error, &context)
            throw Problem(error)
        }
        if let upstream = context.upstream, upstream.enrols,
            let problem = signInProblem(answer, findings, upstream, context)
        {
            throw problem
        }
        if context.token != nil {
            let isRefusal = refuses(answer, findings, context)
            context.ledger.replay.isRefused = isRefusal
            findings.wantsNonce = takesNonce(answer, &context)
            findings.awaitsStatus = isCall && answer.status == 200 && findings.callStatus == nil
            if !findings.wantsNonce { judgeToken(answer, isRefusal, &findings, &context) }
            if isRefusal, !findings.isTokenRefused, !findings.wantsNonce,
                isPersonNeeded(context), let token = context.token, tokenRefusal(answer, of: token) != nil
            {
                throw signInNeeded(context)
            }
        } else if answer.status == 401 {
            switch context.ledger.injection {
            case .injected: findings.obstacle = .fixed
            case .kept: findings.obstacle = .own
            case .replayed, .failed, nil: break
            }
        }
        return findings
    }

    private static func nextProxyRefusal(_ answer: borrowing ResponseHead, _ context: Context) -> NextProxyRefusal? {
        guard let proxy = context.upstream?.rule.settings.proxy, let origin = context.admitted.destination?.origin,
            proxy != .none
        else { return nil }
        return NextProxyRefusal(
            proxy, to: origin, status: 407, challenges: challenges(answer, in: .proxyAuthenticate))
    }

    // MARK: Rule 7

    /// Whether the answer refuses a credential: status 401, UNAUTHENTICATED of gRPC, or as the upstream's
    /// `token_rejected` says.
    private static func refuses(
        _ answer: borrowing ResponseHead, _ findings: Exchange.Findings, _ context: Context
    ) -> Bool {
        guard answer.status >= 400 else { return answer.status == 200 && findings.callStatus == .unauthenticated }
        if answer.status == 401 { return true }
        guard let rejection = context.upstream?.rule.settings.tokenRejected,
            rejection.statuses.contains(answer.status)
        else { return false }
        let line = answer.bytes
        let bytes = line.span
        for rule in rejection.fields {
            let name = Array(rule.name.utf8)
            var fits = false
            for field in answer.fields
            where bytes[field.name].equalsIgnoringCase(name) && rule.accepts(bytes[field.value]) {
                fits = true
            }
            guard fits else { return false }
        }
        return true
    }

    /// Reports to the OAuth client whether the answer accepts or refuses its token, and finds whether a newer one may help.
    private static func judgeToken(
        _ answer: borrowing ResponseHead, _ isRefusal: Bool, _ findings: inout Exchange.Findings,
        _ context: inout Context
    ) {
        guard let token = context.token, !findings.awaitsStatus else { return }
        if isRefusal {
            guard let saysInvalid = tokenRefusal(answer, of: token) else {
                findings.obstacle = .challenge
                return
            }
            findings.isTokenRefused = noteRefusal(saysInvalid: saysInvalid, context)
            if !findings.isTokenRefused { findings.obstacle = obstacle(context) }
            return
        }
        // A gateway may send a 5xx before the server has checked the token.
        let mayPrecede = findings.callStatus?.mayPrecedeTheServer ?? false
        if answer.status == 101 || (200..<500).contains(answer.status) && !mayPrecede { noteAcceptance(context) }
    }

    /// Returns the reason why no newer token comes after a refusal.
    private static func obstacle(_ context: Context) -> NotReplayed {
        if context.exchange.attempts.hasNewToken { return .replayed }
        guard let status = context.oauthClient?.status() else { return .noToken }
        return status.state == .needsAuthentication ? .signIn : status.lastError != nil ? .noToken : .paused
    }

    private static func noteRefusal(saysInvalid: Bool, _ context: Context) -> Bool {
        guard let token = context.token, let upstream = context.upstream else { return false }
        let isReplay = context.exchange.attempts.hasNewToken
        return upstream.refused(token, of: context.oauthClient, saysInvalid: saysInvalid, isReplay: isReplay)
    }

    private static func noteAcceptance(_ context: Context) {
        guard let token = context.token, let upstream = context.upstream else { return }
        upstream.accepted(token, of: context.oauthClient, isReplay: context.exchange.attempts.hasNewToken)
    }

    /// Whether a person has to sign in again. The program then gets a problem that says so, not the upstream's refusal.
    private static func isPersonNeeded(_ context: Context) -> Bool {
        context.exchange.request.replaysUnauthorized && context.oauthClient?.awaitsPerson == true
    }

    private static func signInNeeded(_ context: Context) -> Problem {
        let client = context.upstream?.rule.settings.client ?? ""
        return Problem(.needsAuthentication, client: client, signIn: context.shard.observer.signIn)
    }

    /// A refusal concerns the token if it has no challenge, or a challenge of the token's scheme whose error is absent
    /// or `invalid_token` (RFC 6750, section 3.1). A gRPC refusal without a challenge counts as `invalid_token`.
    /// - Returns: whether the refusal says `invalid_token`; `nil` if it does not concern the token.
    private static func tokenRefusal(_ answer: borrowing ResponseHead, of token: AccessToken) -> Bool? {
        let values = challenges(answer)
        if values.isEmpty, answer.status == 200 { return true }
        let scheme = token.binding == nil ? Challenge.bearer : Challenge.dpop
        guard Challenge.rejectsToken(values, of: scheme) else { return nil }
        return Challenge.hasInvalidTokenError(values, of: scheme)
    }

    // MARK: The status of a gRPC call, after its head

    /// Notes a message of the answer, which shows that the server accepted the token.
    static func messageCame(_ context: inout Context) {
        if context.exchange.messageCame() { noteAcceptance(context) }
    }

    /// Reads the status in the trailers. UNAUTHENTICATED makes the token suspect even after messages, because a stream
    /// may outlive its token.
    /// - Returns: whether a newer token may help.
    static func isTokenRefused(by end: UpstreamEnd, _ context: inout Context) -> Bool {
        guard end.error == nil, context.exchange.callStatus == nil, let status = GRPCStatus(trailers: end.trailers)
        else {
            return false
        }
        let isOpen = context.exchange.statusCame(status)
        guard isOpen || context.exchange.isAnswered, context.token != nil else { return false }
        guard status == .unauthenticated else {
            if isOpen, !status.mayPrecedeTheServer { noteAcceptance(context) }
            return false
        }
        context.ledger.replay.isRefused = true
        context.ledger.replay.obstacle = context.exchange.isAnswered ? .answered : .body
        if noteRefusal(saysInvalid: true, context) { return true }
        context.ledger.replay.obstacle = obstacle(context)
        // No part of the answer was sent, so the program can get the problem instead.
        if !context.exchange.isAnswered, isPersonNeeded(context) { context.exchange.stop(signInNeeded(context)) }
        return false
    }

    // MARK: client: auto

    /// Reports the API's refusal, with its challenge if there is one, to the OAuth client of `client: auto`.
    /// - Returns: the problem to send instead of the answer, if a person has to sign in.
    private static func signInProblem(
        _ answer: borrowing ResponseHead, _ findings: Exchange.Findings, _ upstream: Upstream, _ context: Context
    ) -> Problem? {
        let isRefusal = refuses(answer, findings, context)
        guard isRefusal || answer.status == 403, let client = context.oauthClient else { return nil }
        let values = challenges(answer)
        let known = Challenge.readable(values).challenges.filter {
            [Challenge.bearer, Challenge.dpop].contains($0.scheme)
        }
        let bearer = known.first { $0.value(of: "error") != nil } ?? known.first
        // A 401 with another scheme and a 403 without a challenge are left to the program.
        guard bearer != nil || isRefusal && values.isEmpty else { return nil }
        let challenge = ResourceChallenge(
            url: address(context, upstream), metadata: bearer?.value(of: "resource_metadata"),
            scope: bearer?.value(of: "scope"), error: bearer?.value(of: "error"),
            acrValues: bearer?.value(of: "acr_values"), maxAge: bearer?.value(of: "max_age"))
        if challenge.reason == .token, answer.status == 403 { return nil }
        client.challenged(challenge, hadToken: context.token != nil)
        guard isRefusal, challenge.reason == .authentication || context.token == nil else { return nil }
        return signInNeeded(context)
    }

    /// Returns the request's URL at the API, without its query.
    private static func address(_ context: Context, _ upstream: Upstream) -> String {
        guard let destination = context.admitted.destination else { return "" }
        let origin = "\(destination.scheme.rawValue)://\(destination.authority)"
        let prefix = String(decoding: upstream.rule.pathPrefix, as: UTF8.self)
        guard case .path(let path) = context.admitted.target else { return origin + prefix }
        return context.stream.request.with { _, bytes in
            origin + prefix + bytes[path].text.prefix { $0 != "?" }
        }
    }

    private static func challenges(
        _ answer: borrowing ResponseHead, in name: KnownField = .wwwAuthenticate
    ) -> [[UInt8]] {
        let line = answer.bytes
        let bytes = line.span
        var values: [[UInt8]] = []
        for field in answer.fields where field.known == name {
            values.append(Array(bytes[field.value].text.utf8))
        }
        return values
    }

    // MARK: Nonces (RFC 9449, section 9)

    private static let nonceField = MangledName.plain(DPoPNonce.field)

    /// Stores an answer's nonce.
    /// - Returns: whether the answer is a 401 that only asks for the nonce.
    private static func takesNonce(_ answer: borrowing ResponseHead, _ context: inout Context) -> Bool {
        guard context.token?.binding != nil, let upstream = context.upstream,
            let destination = context.admitted.destination
        else { return false }
        let line = answer.bytes
        let bytes = line.span
        var nonce: String?
        for field in answer.fields where bytes[field.name].mayName(field: nonceField) {
            nonce = DPoPNonce.read(bytes[field.value])
        }
        guard let nonce else { return false }
        upstream.nonces.note(nonce, of: EditHeadPhase.hostField(context.admitted.named, upstream, destination))
        return answer.status == 401 && Challenge.wantNonce(challenges(answer))
    }
}
