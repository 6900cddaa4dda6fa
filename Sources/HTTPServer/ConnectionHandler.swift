import HTTPMessage
import Reactor

/// Answers the requests of one connection, one after the other: one object per connection.
///
/// Called on the loop's thread; must return at once. Each request ends with exactly one of `ServerConnection.finish`,
/// `cut`, or `clientLeft`.
public protocol ConnectionHandler: AnyObject {
    /// The current request is still incomplete and idle, so its connection may have to make room for others.
    var awaitsRequest: Bool { get }
    /// The head of a request is in `connection.head`; its body so far is well-formed.
    func requestBegan(_ connection: ServerConnection)
    /// The request is malformed, or its head came too slowly. The handler answers with `error`, and the connection ends
    /// after the answer.
    func requestRefused(_ connection: ServerConnection, _ error: MessageError)
    /// More bytes of the body, or its end, may be there since the last `takeBody`.
    func bodyArrived(_ connection: ServerConnection)
    /// The client has ended its side while its request is answered. Not called where that happened before the request
    /// began; see `ServerConnection.hasClientEnded`.
    func clientEnded(_ connection: ServerConnection)
    /// There is room for more output, after `waitForRoom`.
    func outputDrained(_ connection: ServerConnection)
    /// The connection is closed. Nothing of an answer can reach the client any more.
    func clientLeft(_ connection: ServerConnection, _ leaving: ClientLeaving)
    /// The handler's own deadline has passed.
    func deadlinePassed(_ connection: ServerConnection)
    /// The stream is ready. Called only after `handOver`.
    func ready(_ connection: ServerConnection, _ readiness: Readiness)
}

extension ConnectionHandler {
    public var awaitsRequest: Bool { false }

    public func clientEnded(_ connection: ServerConnection) {}

    public func ready(_ connection: ServerConnection, _ readiness: Readiness) {}
}

/// Reason why a client is gone.
public enum ClientLeaving: Sendable {
    /// The client left.
    case gone
    /// The server cut it off: it took nothing of its answer for the idle timeout, or the server stopped.
    case cutOff
}
