import CurlTransport
import HTTP2
import HTTPMessage
import Reactor

/// One request to an upstream and its answer, over any transport. Loop's thread only.
///
/// The delegate must not call the stream during a call from the stream.
protocol UpstreamStream: AnyObject {
    var isHTTP2: Bool { get }
    /// Whether the request waits until another request or connection ends.
    var isQueued: Bool { get }
    /// Whether the program's end of an upgraded connection can be passed on while the upstream still sends.
    var endsBySides: Bool { get }
    /// Ends the stream. The delegate gets no further call.
    /// - Parameter code: code of RST_STREAM. HTTP/1.1 ignores it.
    func cancel(_ code: HTTP2Code)
    /// Continues after `BodyTaking.partly`.
    /// - Returns: the end, if the stream ended. `upstreamEnded` is then not called.
    func resumeBody() -> UpstreamEnd?
    /// Continues after `UploadStep.wait`.
    /// - Returns: the end, if the stream ended. `upstreamEnded` is then not called.
    func resumeUpload() -> UpstreamEnd?
}

extension UpstreamStream {
    /// Ends the stream because the program no longer wants the answer.
    func cancel() { cancel(.cancel) }
}

struct UpstreamEnd {
    /// Failure of the exchange; `nil` if the answer is complete, or an upgraded connection ended.
    var error: TransportError?
    /// Whether the connection had served earlier requests, so it may have died before this request.
    var wasReused = false
    /// Whether the upstream has certainly not processed the request.
    var isUnprocessed = false
    /// Code of the RST_STREAM by which the upstream cut its answer; `nil` for other ends, and over HTTP/1.1.
    var code: HTTP2Code?
    /// Trailers of the answer, without hop-by-hop fields.
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
    /// Whether the request offers an upgrade. After a 101, both sides send another protocol.
    var offersUpgrade = false
    /// Whether to use a new connection, because a kept-alive one just died.
    var needsNewConnection = false
    /// Bond of a program that logged in on its connections. They serve no other program.
    var bond: CarrierBond?
}

struct HeadForm {
    /// Whether the target needs scheme and authority, for the next proxy.
    var isAbsolute = false
    /// Whether the head is sent over HTTP/2, which has no Connection field.
    var isHTTP2 = false
    /// The process's own number for the client certificate and key (`TLSMaterial.certificateID`); `nil` without a connection.
    var certificateID: UInt64?
}

enum HeadStep {
    case send
    /// Do not send the request. The stream then ends with `TransportError.Kind.withheld`.
    case withhold
}

/// Result of the token's check after the wait for a connection.
enum LastLook {
    case unchanged
    /// A newer token replaced the request's token.
    case changed
    case withhold
}

enum UploadStep: Equatable {
    /// Number of bytes written into the buffer, not zero.
    case bytes(Int)
    /// No bytes are available. The next call comes after `resumeUpload`.
    case wait
    case end
    /// The body is incomplete, and the stream has to end.
    case abort
}

enum BodyTaking: Equatable {
    case taken
    /// Number of bytes taken. The rest is passed again after `resumeBody`.
    case partly(Int)
    case abort
}

/// Receives a stream's events on the loop's thread, and must not block. During an event, it can end the stream only by
/// the returned value.
protocol UpstreamStreamDelegate: AnyObject {
    /// Called when the connection is ready and the request's head is about to be sent.
    /// - Parameter isReused: whether the connection has served earlier requests.
    func upstreamConnected(isReused: Bool)
    /// Whether the token in the head has expired now. Asked just before the head is sent, because the process may have
    /// been suspended during the turn.
    var hasTokenEnded: Bool { get }
    /// Whether the program still waits for the answer and has not ended its side.
    var isWanted: Bool { get }
    /// Whether the request may be replayed if its connection, which has served others before, was lost.
    var mayReplay: Bool { get }
    /// Appends the request's head without framing fields and without the blank line.
    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep
    /// Receives the head of an interim answer, of 101, or of the final answer.
    /// - Returns: whether the stream continues.
    func upstreamAnswered(_ head: borrowing ResponseHead) -> Bool
    /// Returns the number of bytes of the answer that may be read now. After 0, nothing is read until `resumeBody`.
    func answerRoom() -> Int
    /// Whether the upstream may send much of the answer before the program takes it.
    func mayReadAhead() -> Bool
    /// Receives a piece of the answer's body, unframed; after 101, bytes of another protocol.
    func upstreamSent(_ body: Span<UInt8>) -> BodyTaking
    /// Takes the next piece of the request's body, unframed; after 101, bytes of another protocol.
    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep
    /// Returns the trailers of a request of unknown length. Called after its body.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])]
    /// Called when the upstream of an upgraded connection ended its side. The upstream still accepts bytes.
    func upstreamEndedItsSide()
    /// Called last, also if the value that a delegate's method returned ended the stream. Not called if a method of the
    /// stream returned the end, or after `cancel`.
    func upstreamEnded(_ end: UpstreamEnd)
}
