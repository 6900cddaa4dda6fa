import Reactor

/// The answer to the server name of a ClientHello.
public enum ContextChoice {
    case serve(TLSServerContext)
    /// Ends the handshake with the alert unrecognized_name.
    case refuse
    /// The handshake waits for a later decision. The closure is called at once, and must not use the TLS stream.
    case later((LateDecision) -> Void)

    /// - Parameter context: `nil` refuses the client.
    public init(_ context: TLSServerContext?) { self = context.map { .serve($0) } ?? .refuse }
}

/// Decides the context of a waiting handshake. Any thread. Only the first decision has an effect.
public struct LateDecision: Sendable {
    private final class Waiting {
        weak var stream: TLSServerStream?

        init(_ stream: TLSServerStream) { self.stream = stream }
    }

    private let waiting: LoopBound<Waiting>

    init(_ stream: TLSServerStream) { waiting = LoopBound(Waiting(stream), on: stream.server.loop) }

    /// - Parameter context: `nil` ends the handshake with the alert internal_error.
    public func decide(_ context: TLSServerContext?) {
        waiting.loop.execute { [waiting] in waiting.value.stream?.decide(context) }
    }
}
