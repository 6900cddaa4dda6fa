import HTTPMessage
import Reactor

/// Answers the requests of one client, one after the other: one object per `ClientStream`.
///
/// Called on the loop's thread; must return at once. Each request ends with exactly one of `ClientStream.finish`,
/// `close`, a call that found the client gone, or `clientLeft`.
public protocol ClientStreamHandler: AnyObject {
    /// The current request is still incomplete and idle, so its connection may have to make room for others.
    var awaitsRequest: Bool { get }
    /// The head of a request is in `ClientStream.request`; its body so far is well-formed.
    func requestBegan()
    /// The request is malformed, or its head came too slowly. The handler answers with `error`, and the connection ends
    /// after the answer.
    func requestRefused(_ error: MessageError)
    /// More bytes of the body, or its end, may be there since the last `readBody`.
    func bodyArrived()
    /// The client has ended its side while its request is answered. Not called where that happened before the request
    /// began; see `StreamProgress.hasClientEnded`.
    func clientEnded()
    /// There is room for more output, after a piece that was not taken whole.
    func roomCame()
    /// The connection is closed. Nothing of an answer can reach the client any more.
    func clientLeft(_ leaving: ClientLeaving)
    /// The handler's own deadline has passed.
    func deadlinePassed()
    /// Makes the handler of another stream, which comes on the connection of this handler's one; `nil`: it is refused.
    func handler(for stream: any ClientStream) -> (any ClientStreamHandler)?
    /// The byte stream is ready. Called only after `handOver`.
    func ready(_ readiness: Readiness)
}

extension ClientStreamHandler {
    public var awaitsRequest: Bool { false }

    public func clientEnded() {}

    public func ready(_ readiness: Readiness) {}

    public func handler(for stream: any ClientStream) -> (any ClientStreamHandler)? { nil }
}

/// Reason why a client is gone.
public enum ClientLeaving: Sendable {
    case gone
    /// The server cut it off: it took nothing of its answer for the idle timeout, or the server stopped.
    case cutOff
}

/// Events that a stream's handler waits for.
struct StreamWaits {
    var forBody = false
    var forRoom = false
}
