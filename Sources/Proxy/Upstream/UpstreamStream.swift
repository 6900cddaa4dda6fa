import CurlTransport
import HTTPMessage
import Reactor

/// One request to an upstream, over any transport. Loop's thread only.
protocol UpstreamExchange: AnyObject {
    var isHTTP2: Bool { get }
    /// Whether it waits for a connection.
    var isQueued: Bool { get }
    /// Ends it; the delegate gets no further call.
    func cancel()
    /// After `BodyTaking.partly`.
    func resumeBody()
    /// After `UploadStep.wait`.
    func resumeUpload()
    /// Passes on the client's end of an upgraded connection, if one side can end alone.
    /// - Returns: whether it did.
    func endWriting() -> Bool
    /// Trailers of the answer, without hop-by-hop ones; complete at the end.
    var trailers: [(name: [UInt8], value: [UInt8])] { get }
}

/// Properties of a request that its transport needs.
struct UpstreamRequest {
    var origin: Origin
    var isHead = false
    var expectsContinue = false
    var upload = HTTP1Exchange.Upload.none
    /// Whether to use a new connection, because a kept-alive one just died.
    var isFresh = false
}

struct HeadForm {
    /// Whether the target needs scheme and authority, because a next proxy reads it.
    var isAbsolute = false
    /// Number of the connection's client certificate: `TLSMaterial.pair`; `nil` without a connection yet.
    var pair: UInt64?
}

enum HeadStep {
    case send
    /// The exchange ends with `TransportError.Kind.withheld`.
    case withhold
}

/// State of a request after the wait for its connection.
enum LastLook {
    case unchanged
    case changed
    case withhold
}

enum BodyTaking: Equatable {
    case taken
    /// Number of bytes taken. The rest comes again after `resumeBody`.
    case partly(Int)
    case abort
}

/// Receives an exchange's events, on the loop's thread. Each call may cancel this exchange or begin others, but must
/// not block.
protocol UpstreamExchangeDelegate: AnyObject {
    /// The connection is ready, and the request's head is about to be sent.
    /// - Parameter isReused: whether the connection has served others.
    func upstreamConnected(isReused: Bool)
    /// Called for an exchange whose head was written before its connection was ready.
    /// - Parameter pair: see `HeadForm`.
    func lastLook(over pair: UInt64?) -> LastLook
    /// Whether the head's token has expired by the current time: the process may have been stopped since the turn
    /// began. Called directly before the head is sent.
    var hasTokenEnded: Bool { get }
    /// Whether the client still waits for the answer and has not ended its side.
    var isWanted: Bool { get }
    /// Appends the request's head without framing fields and without the blank line.
    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep
    /// The head of an interim answer, of 101, or of the final answer.
    /// - Returns: whether the exchange continues.
    func upstreamAnswered(_ head: borrowing ResponseHead) -> Bool
    /// A piece of the answer's body, unframed; after 101, bytes of another protocol.
    /// - Parameter keepsRest: whether a part of it may be taken.
    func upstreamSent(_ body: Span<UInt8>, keepsRest: Bool) -> BodyTaking
    /// Takes the next piece of the request's body, unframed; after 101, bytes of another protocol.
    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep
    /// Trailers of a request of unknown length, called after its body.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])]
    /// The upstream ended its side of another protocol, and still takes the client's bytes.
    func upstreamEndedItsSide()
    /// The last call: `error` is `nil` for a complete answer. `trailers` may be read from within it.
    /// - Parameter wasReused: the connection had served others, so it may have died before the request.
    func upstreamEnded(_ error: TransportError?, wasReused: Bool)
}
