/// The phases of a request. All but *send* are types in the folder `Phases` that work on the request's `Context`. The shell
/// (`Forwarder`) performs what they return.
///
/// A feature is a phase, or a row in one.
enum Phase {
    /// Checks the sender: a user of `proxy.users`, and the caller of its connection.
    case identify
    /// Decides by the head whether it may pass, and where to: `Gate.admit`.
    case admit
    /// Gets its credential: the client's token or that of one caller, or keys and the body's digest for SigV4.
    case token
    /// Sends it: `Forwarder.send` and `Upstream.begin`. The body follows.
    case send
    /// Writes the head for the upstream when *send* asks for it, and looks at the token once more (rule 1). `EditHeadPhase`:
    /// strip, rewrite, set, trace, inject, prove, sign, offer an upgrade.
    case editHead
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
                phase = .send
            case .send, .editHead, .judge, .answer, .record: return send(fresh: false)
            }
            guard case .next = action else { return perform(action) }
        }
    }
}
