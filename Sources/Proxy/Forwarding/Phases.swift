/// The phases before a request is sent. Each is a type in the folder `Phases`. `Forwarder` performs the actions that
/// they return.
///
/// The next phase is *send* (`Forwarder.send`, `Upstream.begin`). *Edit head* follows when the connection is ready,
/// *judge* and *answer* for each head of an answer, and *record* at the end.
enum Phase {
    /// Checks the user (`proxy.users`).
    case identify
    /// Decides by the head whether the request may pass, and finds its upstream: `Gate.admit`.
    case admit
    /// Answers a token request (`issue`), or a question for metadata that needs no token. For other requests the phase
    /// *token* follows at once, which gets the credential: a token of the client or of one caller, or keys and the body's
    /// digest for SigV4.
    case issue
}

extension Forwarder {
    /// Runs the phases from `phase` on, then sends the request. Stops at a phase that has to wait or ends the request.
    /// `Forwarder+Upstream` calls the later phases, `Forwarder.settle` calls *record*.
    func run(from phase: Phase) {
        var action = phase == .identify ? IdentifyPhase.run(&context) : .next
        if case .next = action, phase != .issue { action = AdmitPhase.run(&context) }
        if case .next = action { action = IssuePhase.run(&context) }
        if case .next = action { action = MetadataPhase.run(&context) }
        if case .next = action { action = TokenPhase.run(&context) }
        if case .next = action { send(newConnection: false) } else { perform(action) }
    }
}
