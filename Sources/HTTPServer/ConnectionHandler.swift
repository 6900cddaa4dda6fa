import HTTPMessage
import Reactor

/// Answers the requests of one connection, one after the other: one object for as long as the connection lives.
///
/// Called on the loop's thread; must return at once. Each request that begins is ended by exactly one of
/// `ServerConnection.finish`, `cut`, or `clientLeft`.
public protocol ConnectionHandler: AnyObject {
    /// The request that began is not whole yet, and nobody works on it: its connection may have to make room.
    var awaitsRequest: Bool { get }
    /// The head of a request stands in `connection.head`; what has come of its body is not malformed.
    func requestBegan(_ connection: ServerConnection)
    /// What should be a request can't be taken, or its head came too slowly. To be answered with `error`; the connection
    /// ends behind the answer.
    func requestRefused(_ connection: ServerConnection, _ error: MessageError)
    /// More of the request's body may be there than `takeBody` found last, or its end.
    func bodyArrived(_ connection: ServerConnection)
    /// The client has ended its side while its request is answered. Not called where that happened before the request
    /// began; see `ServerConnection.hasClientEnded`.
    func clientEnded(_ connection: ServerConnection)
    /// There is room for more output, after `waitForRoom`.
    func outputDrained(_ connection: ServerConnection)
    /// Nothing of an answer can reach the client any more; the connection is closed.
    func clientLeft(_ connection: ServerConnection, _ leaving: ClientLeaving)
    /// The handler's own deadline has passed.
    func deadlinePassed(_ connection: ServerConnection)
    /// After `handOver`: what its socket is ready for.
    func ready(_ connection: ServerConnection, _ readiness: Readiness)
}

extension ConnectionHandler {
    public var awaitsRequest: Bool { false }

    public func clientEnded(_ connection: ServerConnection) {}

    public func ready(_ connection: ServerConnection, _ readiness: Readiness) {}
}

/// Why a client is no longer there.
public enum ClientLeaving: Sendable {
    /// It went.
    case gone
    /// By us: it took nothing of its answer for the idle timeout, or the server has stopped.
    case cutOff
}
