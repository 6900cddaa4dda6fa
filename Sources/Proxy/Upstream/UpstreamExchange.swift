import CurlTransport
import HTTPMessage
import Reactor

/// One request under way to an upstream, whatever carries it. Loop's thread only.
protocol UpstreamExchange: AnyObject {
    var isHTTP2: Bool { get }
    /// It waits for a connection, and occupies none.
    var isQueued: Bool { get }
    /// Ends it; the delegate is told nothing more.
    func cancel()
    /// After `BodyTaking.partly`.
    func resumeBody()
    /// After `UploadStep.wait`.
    func resumeUpload()
    /// Passes the end of an upgraded connection's bytes on, where a connection can end on one side alone.
    /// - Returns: whether it could.
    func endWriting() -> Bool
    /// What followed the body, complete at the end; checked, and without what ends at this hop.
    var trailers: [(name: [UInt8], value: [UInt8])] { get }
}

/// What the request is, as far as carrying it is concerned.
struct UpstreamRequest {
    var origin: Origin
    var isHead = false
    var expectsContinue = false
    var upload = HTTP1Exchange.Upload.none
    /// On a connection of its own, since a kept-alive one just died.
    var isFresh = false
}

/// What the request's head has to look like.
struct HeadForm {
    /// The target names scheme and authority: a proxy in between reads it.
    var isAbsolute = false
    /// Number of the client certificate of its connection: `TLSMaterial.pair`; `nil`: there is no connection yet.
    var pair: UInt64?
}

enum HeadStep {
    case send
    /// The exchange ends with `TransportError.Kind.withheld`.
    case withhold
}

/// What has become of a request while it waited for its connection.
enum LastLook {
    case unchanged
    /// Its head has to be written anew.
    case changed
    /// It can't be sent as things are.
    case withhold
}

/// What became of a piece of an answer's body.
enum BodyTaking: Equatable {
    case taken
    /// So much was taken; the rest comes again after `resumeBody`.
    case partly(Int)
    /// The exchange does not go on.
    case abort
}

/// What an exchange tells and asks its owner, on the loop's thread. It may cancel this exchange or begin others from
/// within each call, never block.
protocol UpstreamExchangeDelegate: AnyObject {
    /// There is a connection, and the request's head, as it stands, is about to be sent on it.
    /// - Parameter isReused: it has served others.
    func upstreamConnected(isReused: Bool)
    /// For an exchange whose head was written before its connection was there: now it is.
    /// - Parameter pair: see `HeadForm`.
    func lastLook(over pair: UInt64?) -> LastLook
    /// Whether the token in the head has ended by a clock that is read now: the process may have been stopped since the
    /// turn began. Asked directly before the head is sent.
    var hasTokenEnded: Bool { get }
    /// Whether a client waits for the answer that has not ended its side.
    var isWanted: Bool { get }
    /// Appends the request's head as it goes out, without what frames the body and without the blank line.
    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep
    /// An interim answer's head, 101's, or the final one's.
    /// - Returns: whether to go on.
    func upstreamAnswered(_ head: borrowing ResponseHead) -> Bool
    /// A piece of the answer's body, unframed; after 101, of another protocol.
    /// - Parameter keepsRest: a part of it may be taken.
    func upstreamSent(_ body: Span<UInt8>, keepsRest: Bool) -> BodyTaking
    /// Asks for the next piece of the request's body, unframed; after 101, of another protocol.
    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep
    /// What follows the body of a request whose length was unknown, asked for when the body has ended.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])]
    /// The upstream has ended its side of another protocol, and takes what the client still sends.
    func upstreamEndedItsSide()
    /// The last call: `error` is `nil` when the answer is whole. The exchange may be asked for `trailers` from within it.
    ///
    /// - Parameter wasReused: the connection had served others, so it may have died before the request came.
    func upstreamEnded(_ error: TransportError?, wasReused: Bool)
}
