import HTTPMessage
import Reactor

/// Answers the requests of one program, one after the other: one object per `ProgramStream`.
///
/// Called on the loop's thread; each method must return at once. Each request ends with exactly one of
/// `ProgramStream.finish`, `close`, a method that found the program gone, or `programLeft`.
public protocol ProgramStreamHandler: AnyObject {
    /// Whether the current request is incomplete, so that its connection may be closed to make room for others.
    var awaitsRequest: Bool { get }
    /// Called when a request's head is in `ProgramStream.request`. The body is well-formed so far.
    func requestBegan()
    /// Called when a request is malformed, or its head came too slowly. The handler answers with `error`, and the
    /// connection ends after the answer.
    func requestRefused(_ error: MessageError)
    /// Called when more of the body, or its end, may have arrived since the last `readBody`.
    func bodyArrived()
    /// Called when the program ends its side while its request is answered. An earlier end shows only in
    /// `StreamProgress.hasProgramEnded`.
    func programEnded()
    /// Called when there is room for more output, after a `write` that did not take all bytes.
    func roomCame()
    /// Called when the server stops and no longer waits for the answer. The handler may answer at once.
    func serverStops()
    /// Called when the connection or its HTTP/2 stream is closed. Nothing more of an answer can reach the program.
    func programLeft(_ leaving: ProgramLeaving)
    /// Called when the deadline that the handler set has passed.
    func deadlinePassed()
    /// Returns a handler for another stream on the same connection; `nil` refuses the stream, and ends the connection
    /// once its other streams have ended.
    func handler(for stream: any ProgramStream) -> (any ProgramStreamHandler)?
    /// Called when the byte stream is ready, only after `handOver`.
    func ready(_ readiness: Readiness)
}

extension ProgramStreamHandler {
    public var awaitsRequest: Bool { false }

    public func programEnded() {}

    public func serverStops() {}

    public func ready(_ readiness: Readiness) {}

    public func handler(for stream: any ProgramStream) -> (any ProgramStreamHandler)? { nil }
}

/// Reason why a program is gone.
public enum ProgramLeaving: Sendable {
    case gone
    /// The program read nothing of its answer for too long.
    case stalled
    /// The server stopped before the request ended.
    case stopped
    /// The program may send no more requests.
    case cutOff
}

/// Events that a stream's handler waits for.
struct StreamWaits {
    var forBody = false
    var forRoom = false
}
