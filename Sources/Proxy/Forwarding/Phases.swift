/// The phases of a request. All but *send* are types in the folder `Phases` that work on the request's `Context`. The shell
/// (`Forwarder`) performs what they return.
///
/// A feature is a phase, or a row in one. Behind these come *send* (`Forwarder.send`, `Upstream.begin`), *edit head* when
/// that asks for the head, *judge* and *answer* for each head of an answer, and *record* at the end.
enum Phase {
    /// Checks the sender: a user of `proxy.users`, and the caller of its connection.
    case identify
    /// Decides by the head whether it may pass, and where to: `Gate.admit`.
    case admit
    /// Gets its credential: the client's token or that of one caller, or keys and the body's digest for SigV4.
    case token
}

extension Forwarder {
    /// Runs the phases that a request passes before its upstream is asked, from `phase` on, until one of them has to wait
    /// or ends the request. The other phases are called by `Forwarder+Upstream`, and *record* by `Forwarder.settle`.
    func run(from phase: Phase) {
        var action = phase == .identify ? IdentifyPhase.run(&context) : .next
        if case .next = action, phase != .token { action = AdmitPhase.run(&context) }
        if case .next = action { action = TokenPhase.run(&context) }
        if case .next = action { send(fresh: false) } else { perform(action) }
    }
}
