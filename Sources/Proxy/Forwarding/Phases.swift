/// The phases of a request, in their order. Each is a type with one function over the request's `Context`; it decides
/// and changes nothing else, and the shell (`Forwarder`) performs the `Action` that it returns.
///
/// A feature is a phase, or a row in one.
enum Phase {
    /// Who sends the request? `proxy.users`, and the caller that its connection shows.
    case identify
    /// May it pass, and where to? `Gate.admit`: body limit, circle, route, Max-Forwards, upgrade, kind of credential.
    case admit
    /// What signs it? The client's token, or that of one caller; keys and the body's digest for SigV4.
    case token
    /// What does its head say upstream? `EditHeadPhase`, when there is a connection: strip, rewrite, set, trace, inject,
    /// prove, sign, offer an upgrade. The token is looked at once more (rule 1).
    case editHead
    /// Which connection carries it? `Forwarder.send` and `Upstream.begin`; the body follows.
    case send
    /// What does the answer's head mean? `JudgePhase`: a nonce, a refused token (rule 7), a sign-in, an upgrade.
    case judge
    /// What does the client get? `AnswerPhase`: head, body, or a `Problem` of ours.
    case answer
    /// What is left of it? `RecordPhase`: counters, access log, audit stream, span.
    case record
}

extension Forwarder {
    /// Runs the phases that a request passes before its upstream is asked, from `phase` on, until one of them has to wait
    /// or ends the request. Events of the upstream bring about the others.
    func run(from phase: Phase) {
        var phase = phase
        while true {
            let action: Action
            switch phase {
            case .identify:
                action = IdentifyPhase.run(&context)
                phase = .admit
            case .admit:
                action = AdmitPhase.run(&context)
                phase = .token
            case .token:
                action = TokenPhase.run(&context)
                phase = .editHead
            case .editHead, .send, .judge, .answer, .record: return send(fresh: false)
            }
            guard case .next = action else { return perform(action) }
        }
    }
}
