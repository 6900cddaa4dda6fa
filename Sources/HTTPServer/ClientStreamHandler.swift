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
    /// Makes handlers for the streams of HTTP/2 on the same connection; `nil`: HTTP/2 is not served there.
    var streamHandlers: ((any ClientStream) -> any ClientStreamHandler)? { get }
    /// The byte stream is ready. Called only after `handOver`.
    func ready(_ readiness: Readiness)
}

extension ClientStreamHandler {
    public var awaitsRequest: Bool { false }

    public var streamHandlers: ((any ClientStream) -> any ClientStreamHandler)? { nil }

    public func clientEnded() {}

    public func ready(_ readiness: Readiness) {}
}

/// Reason why a client is gone.
public enum ClientLeaving: Sendable {
    /// The client left.
    case gone
    /// The server cut it off: it took nothing of its answer for the idle timeout, or the server stopped.
    case cutOff
}
