/// The phases of a request, in their order. Each is a type in the folder `Phases` that works on the request's `Context`. The
/// shell (`Forwarder`) performs the `Action` that it returns.
///
/// A feature is a phase, or a row in one.
enum Phase {
    /// Checks the sender: a user of `proxy.users`, and the caller of its connection.
    case identify
    /// Decides whether it may pass, and where to. `Gate.admit`: body limit, circle, route, Max-Forwards, upgrade, kind of
    /// credential.
    case admit
    /// Gets what signs it: the client's token or that of one caller, or keys and the body's digest for SigV4.
    case token
    /// Writes the head for the upstream. `Forwarder.writeHead` calls it once *send* has a connection. `EditHeadPhase`: strip, rewrite, set, trace, inject,
    /// prove, sign, offer an upgrade. The token is looked at once more (rule 1).
    case editHead
    /// Gets a connection and sends the request. `Forwarder.send` and `Upstream.begin`; the body follows.
    case send
    /// Finds out what the answer's head means. `JudgePhase`: a nonce, a refused token (rule 7), a sign-in.
    case judge
    /// Writes the client's answer. `AnswerPhase`: head and body, an upgrade, or a `Problem` of the proxy.
    case answer
    /// Counts and records it. `RecordPhase`: counters, access log, audit stream, span.
    case record
}

extension Forwarder {
    /// Runs the phases that a request passes before its upstream is asked, from `phase` on, until one of them has to wait
    /// or ends the request. The other phases are called by `Forwarder+Upstream`, and *record* by `Forwarder.settle`.
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
