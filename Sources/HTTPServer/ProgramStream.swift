import HTTP2
import HTTPMessage
import Reactor

/// A program's requests and their answers, one at a time, in any version of HTTP. `ServerConnection` implements the
/// protocol for HTTP/1.1. Loop's thread only.
///
/// No method calls the handler. A method that finds the program gone closes the stream and says so in its result.
public protocol ProgramStream: AnyObject {
    var source: ProgramSource { get }

    /// The current request's head and, once the body is read, its trailers.
    var request: ReceivedRequest { get }

    var progress: StreamProgress { get }

    /// Reads the next piece of the body, without its framing. After a 101, reads bytes of the other protocol.
    /// - Throws: `MessageError` for malformed chunks.
    func readBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyReading

    /// Keeps up to `limit` bytes of the body for a replay. Many bodies on one connection may be too much to keep.
    /// - Parameter isNeeded: whether the request can't go on if its body is not kept. A stream then ends instead.
    func keepBody(upTo limit: Int, isNeeded: Bool)

    /// Returns to the body's first byte.
    /// - Returns: `false`, without a change, if the first bytes were dropped.
    func rewindBody() -> Bool

    /// Returns whether there are unread bytes of the program: the body, or bytes after the request.
    /// - Parameter reading: whether to read from the socket first.
    /// - Returns: `nil` when the program is gone.
    func hasInput(reading: Bool) -> Bool?

    /// Looks at the bytes after the request, which stay unread.
    /// - Parameter isEnough: judges the bytes received so far, at least one.
    /// - Returns: `.wait` if more bytes are needed; `bodyArrived` will report them.
    func peek(until isEnough: (Span<UInt8>) -> Bool) -> Peeked

    /// Replaces a refused request by one with another head. The refused bytes stay unread, after the new head.
    /// - Throws: `MessageError` for a malformed head.
    func replaceRequest(by head: Span<UInt8>) throws(MessageError)

    /// Writes the head of an interim answer, a 101 or the final answer. A 101 changes the protocol.
    /// - Parameters:
    ///   - reason: without line ends.
    ///   - fields: appends the answer's field lines. The stream adds Transfer-Encoding and Connection itself.
    /// - Returns: number of bytes written.
    @discardableResult
    func answer(_ head: AnswerHead, reason: Span<UInt8>, fields: (inout ByteBuffer) -> Void) -> Int

    /// Writes a piece of the answer's body, and adds the framing.
    /// - Returns: number of bytes taken; `nil` when the program is gone. If some bytes are left, `roomCame` follows, or
    ///   the server cuts the program off after its stall timeout.
    func write(_ piece: Span<UInt8>, _ taking: PieceTaking) -> Int?

    /// Number of bytes of the answer that may be read from the upstream now. After 0, `roomCame` follows.
    func answerRoom() -> Int

    /// Whether an upstream may send up to 256 KiB of the answer before the program takes them. Once true, true for this
    /// request. Over HTTP/2, few streams of a connection may at the same time.
    func mayReadAhead() -> Bool

    /// Shuts down our side of another protocol. The program's bytes still arrive.
    func endOutput()

    /// Ends an answer whose head and body have been written.
    /// - Parameter keepsOpen: whether another request may follow. Over HTTP/2, `false` sends GOAWAY: other streams that
    ///   have begun are still answered.
    func finish(trailers: [(name: [UInt8], value: [UInt8])], keepsOpen: Bool)

    /// Closes at once; unsent output is lost.
    /// - Parameters:
    ///   - cut: whether the program must see that the answer is incomplete.
    ///   - code: code of RST_STREAM over HTTP/2; `nil`: INTERNAL_ERROR for a cut answer, else CANCEL.
    func close(cut: Bool, code: HTTP2Code?)

    /// Closes the connection at once, with all of its requests. The other requests' handlers are told that the program
    /// left.
    func closeConnection()

    /// Calls the handler's `deadlinePassed` after the timeout; `.off`: never. The request's end clears the deadline. A
    /// new deadline replaces the old one, and so does a `write` that does not take all bytes.
    func setDeadline(after timeout: Timeout)

    /// Like `setDeadline`, for a wait in which the program need not send anything. If the server stops, at most its
    /// `drainIdleTimeout` is left of the wait.
    func setIdleDeadline(after timeout: Timeout)

    /// Wraps the byte stream in another one, such as TLS, which then carries the program's next requests.
    /// - Parameter make: receives the old stream, and the bytes read from it after the request's head.
    /// - Returns: `false` on failure. Then the stream can only be closed.
    func wrapStream(_ make: (any ByteStream, consuming ByteBuffer) -> (any ByteStream)?) -> Bool

    /// Hands the byte stream over, for another protocol. The server counts the connection until `close`.
    /// - Parameter take: receives the stream, the bytes read after the request's head, and the unsent output. If it
    ///   throws, nothing changes.
    func handOver(
        _ take: (HandedOverStream, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError)
}

extension ProgramStream {
    public func close(cut: Bool) { close(cut: cut, code: nil) }

    public func keepBody(upTo limit: Int) { keepBody(upTo: limit, isNeeded: false) }

    public func setIdleDeadline(after timeout: Timeout) { setDeadline(after: timeout) }
}

/// Origin of a program's requests: a listener and a connection.
public struct ProgramSource {
    /// The server's listener that accepted the connection.
    public let listener: Int
    /// The process at the other end of a Unix socket.
    public let peer: PeerCredentials?
    /// The connection as the listener accepted it, or the stream that wraps the connection, such as TLS.
    public let stream: any ByteStream

    init(listener: Int, _ stream: any ByteStream) {
        self.listener = listener
        self.stream = stream
        peer = stream.peerCredentials
    }

    /// The program's address; `nil` on a Unix socket. Makes a system call.
    public var address: SocketAddress? { stream.peerAddress }

    /// Address that the program dialled if the kernel redirected the connection, otherwise `nil`. Makes a system call.
    public var originalDestination: SocketAddress? { stream.originalDestination }

    /// Local address; for a wildcard listener, the address that the program dialled. Makes a system call.
    public var localAddress: SocketAddress? { stream.localAddress }
}

/// Progress of a request and its answer.
public struct StreamProgress {
    /// Number of the body's bytes read since the start or the last rewind.
    public var bodyTaken: UInt64
    /// Whether the request's body has been read to its end.
    public var isRequestComplete: Bool
    /// Whether the body can be read again from its first byte.
    public var canRewind: Bool
    /// Whether the program has ended its side. Earlier bytes may be unread, and the program may still read.
    public var hasProgramEnded: Bool
    /// Whether all output was sent.
    public var isOutputSent: Bool
    /// Whether no request may follow this one, because the server or its listener is ending.
    public var mustClose: Bool
}

/// Head of an answer, apart from its fields.
public struct AnswerHead {
    public var status: Int
    /// `.chunked`: the length is unknown, and the body is written in chunks. `.length`: a Content-Length field has it.
    public var framing: BodyFraming
    /// Whether another request may follow.
    public var keepsOpen: Bool
    /// Whether the answer comes from the server itself, not from an upstream. Such an answer gets a Date field.
    public var isOwn: Bool

    public init(_ status: Int, _ framing: BodyFraming = .none, keepsOpen: Bool = true, isOwn: Bool = false) {
        self.status = status
        self.framing = framing
        self.keepsOpen = keepsOpen
        self.isOwn = isOwn
    }
}

/// The part of a piece that `write` takes for a slow program.
public enum PieceTaking {
    /// All bytes, although some must wait. For small pieces.
    case all
    /// No bytes while much output waits, otherwise all.
    case allOrNone
    /// No bytes while much output waits, otherwise the bytes that can be sent at once, or all if the answer is chunked.
    case part
}

public enum BodyReading: Sendable, Equatable {
    /// Number of bytes stored, above 0.
    case bytes(Int)
    /// No bytes now. `bodyArrived` reports the next ones.
    case wait
    case end
    /// The program ended its side in the middle of the body.
    case cut
    case gone
}

public enum Peeked: Sendable, Equatable {
    /// Enough bytes have arrived; this is the first.
    case byte(UInt8)
    case wait
    /// The program has ended its side.
    case end
    case gone
}

/// A program's byte stream after a hand-over.
public struct HandedOverStream {
    public let stream: any ByteStream
    /// Whether the kernel has announced the program's end.
    public let isEnding: Bool
    /// Whether all bytes up to the program's end have been read.
    public let hasEnded: Bool
}

/// A received request: its head, the bytes that the head's ranges refer to, and its trailers. Reused for the next one.
public final class ReceivedRequest {
    /// Not copyable, so that lending costs nothing.
    struct Content: ~Copyable {
        var head = RequestHead()
        var bytes = ByteBuffer()

        @inline(__always) borrowing func with<Result, Failure: Error>(
            _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            try read(head, bytes.bytes)
        }

        /// Prepares for the next request. Keeps the memory of a usual head: an idle connection must not hold more.
        mutating func finish() {
            if bytes.capacity > Self.kept { self = Content() } else { head.reset() }
        }

        private static let kept = 8 * 1024

        mutating func parse(_ limits: HeadLimits) throws(MessageError) -> RequestHead.Status {
            try RequestReader.parse(&head, bytes, limits)
        }
    }

    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var content = Content()

    /// Drops the head, its memory and the trailers, once the answer is complete.
    func release() {
        content = Content()
        if !trailers.isEmpty { trailers = [] }
    }

    /// Trailers that may be forwarded; complete once the body is read.
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
