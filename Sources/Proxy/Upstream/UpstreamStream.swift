import CurlTransport
import HTTP2
import HTTPMessage
import Reactor

/// One request to an upstream and its answer, over any transport. Loop's thread only.
///
/// It is not called from within a call of its delegate.
protocol UpstreamStream: AnyObject {
    var isHTTP2: Bool { get }
    /// Whether it waits for a connection.
    var isQueued: Bool { get }
    /// Whether the client's end of an upgraded connection can be passed on, so that the upstream's side goes on alone.
    var endsBySides: Bool { get }
    /// Ends it; the delegate gets no further call.
    /// - Parameter code: tells an upstream over HTTP/2 why.
    func cancel(_ code: HTTP2Code)
    /// After `BodyTaking.partly`.
    /// - Returns: the end, in place of `upstreamEnded`.
    func resumeBody() -> UpstreamEnd?
    /// After `UploadStep.wait`.
    /// - Returns: the end, in place of `upstreamEnded`.
    func resumeUpload() -> UpstreamEnd?
}

extension UpstreamStream {
    /// Ends it for a client that no longer wants the answer.
    func cancel() { cancel(.cancel) }
}

/// How an exchange with an upstream ended.
struct UpstreamEnd {
    /// `nil`: the answer is complete.
    var error: TransportError?
    /// The connection had served others, so it may have died before the request.
    var wasReused = false
    /// Whether the upstream has certainly not processed the request.
    var isUnprocessed = false
    /// Code of the RST_STREAM by which the upstream cut its answer; `nil` for other ends, and over HTTP/1.1.
    var code: HTTP2Code?
    /// Trailers of the answer, without hop-by-hop ones.
    var trailers: [(name: [UInt8], value: [UInt8])] = []
}

/// Properties of a request that its transport needs.
struct UpstreamRequest {
    var origin: Origin
    var isHead = false
    var expectsContinue = false
    /// Whether the request is a gRPC call, which needs HTTP/2.
    var isGRPC = false
    var upload = HTTP1Exchange.Upload.none
    /// Whether to use a new connection, because a kept-alive one just died.
    var isFresh = false
}

struct HeadForm {
    /// Whether the target needs scheme and authority, because a next proxy reads it.
    var isAbsolute = false
    /// Whether the stream is one of HTTP/2, where Connection has no place.
    var isHTTP2 = false
    /// Number of the connection's client certificate: `TLSMaterial.pair`; `nil` without a connection yet.
    var pair: UInt64?
}

enum HeadStep {
    case send
    /// The stream ends with `TransportError.Kind.withheld`.
    case withhold
}

/// State of a request after the wait for its connection.
enum LastLook {
    case unchanged
    case changed
    case withhold
}

enum UploadStep: Equatable {
    /// Number of bytes written, not zero.
    case bytes(Int)
    /// No bytes now. The next call comes after `resumeUpload`.
    case wait
    case end
    /// The body is incomplete.
    case abort
}

enum BodyTaking: Equatable {
    case taken
    /// Number of bytes taken. The rest comes again after `resumeBody`.
    case partly(Int)
    case abort
}

/// Receives a stream's events, on the loop's thread; must not block. Only the value that a call returns may end
/// the stream.
protocol UpstreamStreamDelegate: AnyObject {
    /// The connection is ready, and the request's head is about to be sent.
    /// - Parameter isReused: whether the connection has served others.
    func upstreamConnected(isReused: Bool)
    /// Whether the head's token has expired by the current time: the process may have been stopped since the turn
    /// began. Called directly before the head is sent.
    var hasTokenEnded: Bool { get }
    /// Whether the client still waits for the answer and has not ended its side.
    var isWanted: Bool { get }
    /// Appends the request's head without framing fields and without the blank line.
    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep
    /// The head of an interim answer, of 101, or of the final answer.
    /// - Returns: whether the stream continues.
    func upstreamAnswered(_ head: borrowing ResponseHead) -> Bool
    /// A piece of the answer's body, unframed; after 101, bytes of another protocol.
    func upstreamSent(_ body: Span<UInt8>) -> BodyTaking
    /// Takes the next piece of the request's body, unframed; after 101, bytes of another protocol.
    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep
    /// Trailers of a request of unknown length, called after its body.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])]
    /// The upstream ended its side of another protocol, and still takes the client's bytes.
    func upstreamEndedItsSide()
    /// The last call, also after a call that ended the stream.
    func upstreamEnded(_ end: UpstreamEnd)
}
