import HTTP2
import HTTPMessage
import Reactor

/// A program's requests and their answers, one at a time, in any version of HTTP. `ServerConnection` is the form of
/// HTTP/1.1. Loop's thread only.
///
/// No call here calls the handler. A call that finds the client gone closes the stream and returns that.
public protocol ClientStream: AnyObject {
    var source: ClientSource { get }

    /// The current request's head and, once the body is read, its trailers.
    var request: ReceivedRequest { get }

    var progress: StreamProgress { get }

    /// Reads the next piece of the body, unframed; after an answer of 101, bytes of the other protocol.
    /// - Throws: `MessageError` for malformed chunks.
    func readBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyReading

    /// Keeps up to `limit` bytes of the body, so that it can be read again.
    func keepBody(upTo limit: Int)

    /// Goes back to the body's first byte.
    /// - Returns: `false`, and changes nothing, when the first bytes are gone.
    func rewindBody() -> Bool

    /// Whether the client sent bytes behind the request without waiting for an answer.
    /// - Parameter reading: whether to read the bytes that have arrived first.
    /// - Returns: `nil` when the client is gone.
    func hasInput(reading: Bool) -> Bool?

    /// Looks at the client's next bytes behind the request, which stay unread.
    /// - Parameter isEnough: receives the bytes so far, at least one.
    /// - Returns: `.wait`: `bodyArrived` reports the next ones.
    func peek(until isEnough: (Span<UInt8>) -> Bool) -> Peeked

    /// Puts a head in the place of a refused request. The bytes of that one stay unread, behind the head.
    /// - Throws: `MessageError` for a malformed head.
    func replaceRequest(by head: Span<UInt8>) throws(MessageError)

    /// Writes the head of an answer, with its framing: an interim one, 101 or the final one. 101 changes the protocol.
    /// - Parameters:
    ///   - reason: without line ends.
    ///   - fields: appends the answer's field lines. The stream adds Transfer-Encoding and Connection itself.
    /// - Returns: number of bytes written.
    @discardableResult
    func answer(_ head: AnswerHead, reason: Span<UInt8>, fields: (inout ByteBuffer) -> Void) -> Int

    /// Writes a piece of the answer's body, unframed.
    /// - Returns: number of bytes taken; if fewer than all, `roomCame` follows, or the client is cut off after the
    ///   server's stall timeout. `nil` when the client is gone.
    func write(_ piece: Span<UInt8>, _ taking: PieceTaking) -> Int?

    /// Ends our side of another protocol; the client's bytes still arrive.
    func endOutput()

    /// Ends an answer whose head and body have been written.
    /// - Parameter keepsOpen: whether another request may follow.
    func finish(trailers: [(name: [UInt8], value: [UInt8])], keepsOpen: Bool)

    /// Closes at once; unsent output is lost.
    /// - Parameters:
    ///   - cut: whether the client must see that the answer is incomplete.
    ///   - code: code of RST_STREAM over HTTP/2; `nil`: INTERNAL_ERROR for a cut answer, else CANCEL.
    func close(cut: Bool, code: HTTP2Code?)

    /// Calls `deadlinePassed` after the timeout, unless the request ends or another deadline is set first; a `write` that
    /// takes less than all sets one, too. `.off`: no deadline.
    func setDeadline(after timeout: Timeout)

    /// The same for a client that may send nothing for now. While the server stops, its idle timeout counts, if that is
    /// shorter.
    func setIdleDeadline(after timeout: Timeout)

    /// Puts a stream upon the one so far, such as TLS. Requests are read from it once the current one is finished.
    /// - Parameter make: receives the stream so far, and the bytes read from it behind the request's head.
    /// - Returns: `false` when that is not possible. Then the stream can only be closed.
    func layStream(_ make: (any ByteStream, consuming ByteBuffer) -> (any ByteStream)?) -> Bool

    /// Hands the byte stream over, for bytes that are not HTTP. The stream stays in the server's count until `close`.
    /// - Parameter take: receives the stream, the bytes read behind the request's head, and the unsent output. If it
    ///   throws, nothing changes.
    func handOver(
        _ take: (HandedOver, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError)
}

extension ClientStream {
    public func close(cut: Bool) { close(cut: cut, code: nil) }

    public func setIdleDeadline(after timeout: Timeout) { setDeadline(after: timeout) }
}

/// Where a client's requests come from.
public struct ClientSource {
    /// The server's listener that accepted the connection.
    public let listener: Int
    /// The process at the other end of a Unix socket.
    public let peer: PeerCredentials?
    /// The connection: as the listener accepted it, or with the stream that was put upon it then.
    public let stream: any ByteStream

    init(listener: Int, _ stream: any ByteStream) {
        self.listener = listener
        self.stream = stream
        peer = stream.peerCredentials
    }

    /// The client's address; `nil` on a Unix socket. A system call.
    public var address: SocketAddress? { stream.peerAddress }

    /// Address that the client dialled before the kernel redirected the connection; `nil`: it was not redirected. A system
    /// call.
    public var originalDestination: SocketAddress? { stream.originalDestination }

    /// The local address; for a wildcard listener, the address that was dialled. A system call.
    public var localAddress: SocketAddress? { stream.localAddress }
}

/// How far a request and its answer have come.
public struct StreamProgress {
    /// Bytes of the body read in this pass.
    public var bodyTaken: UInt64
    /// The request's body has been read to its end.
    public var isRequestComplete: Bool
    /// The body can be read again from its first byte.
    public var canRewind: Bool
    /// The client has ended its side, though earlier bytes may be unread. This does not show whether it is gone.
    public var hasClientEnded: Bool
    /// No output waits for the client.
    public var isOutputTaken: Bool
    /// No request can follow this one: the server or its listener is ending.
    public var mustClose: Bool
}

/// Head of an answer, apart from its fields.
public struct AnswerHead {
    public var status: Int
    /// `.chunked`: the length is not known, and the body is written in chunks. `.length`: a field says it.
    public var framing: BodyFraming
    /// Whether another request may follow.
    public var keepsOpen: Bool
    /// The answer comes from here and not from an upstream, so it is given a Date.
    public var isOwn: Bool

    public init(_ status: Int, _ framing: BodyFraming = .none, keepsOpen: Bool = true, isOwn: Bool = false) {
        self.status = status
        self.framing = framing
        self.keepsOpen = keepsOpen
        self.isOwn = isOwn
    }
}

/// The part to take of a piece for a slow client.
public enum PieceTaking {
    /// All of it, although it has to wait. For small pieces.
    case all
    /// Nothing while much output waits; else all.
    case allOrNone
    /// As much as goes out at once; all of it where the answer is chunked.
    case part
}

public enum BodyReading: Sendable, Equatable {
    /// Number of bytes stored, above 0.
    case bytes(Int)
    /// No bytes now. `bodyArrived` reports the next ones.
    case wait
    case end
    /// The client ended its side in the middle of the body.
    case cut
    case gone
}

public enum Peeked: Sendable, Equatable {
    /// Enough bytes are there; the first one.
    case byte(UInt8)
    case wait
    /// The client has ended its side.
    case end
    case gone
}

/// A client's byte stream after a hand-over.
public struct HandedOver {
    public let stream: any ByteStream
    /// The client's end has been announced.
    public let isEnding: Bool
    /// All bytes up to the client's end have been read.
    public let hasEnded: Bool
}

/// A request as received: its head, the bytes that the head's ranges refer to, and its trailers. Reused.
public final class ReceivedRequest {
    /// Can't be copied, so that lending it costs nothing.
    struct Content: ~Copyable {
        var head = RequestHead()
        var bytes = ByteBuffer()

        @inline(__always) borrowing func with<Result, Failure: Error>(
            _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            try read(head, bytes.bytes)
        }

        mutating func parse(_ limits: HeadLimits) throws(MessageError) -> RequestHead.Status {
            try RequestReader.parse(&head, bytes, limits)
        }
    }

    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var content = Content()
    /// Trailers that may be passed on; complete once the body is read.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    public internal(set) var trailers: [(name: [UInt8], value: [UInt8])] = []

    public var head: RequestHead { content.head }

    /// Lends the head and its bytes.
    @inline(__always) public func with<Result, Failure: Error>(
        _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try content.with(read)
    }
}
