import CurlTransport
public import HTTPMessage
import Reactor

/// Facts of one finished request, for the access log, the audit stream and the span. A plain value.
///
/// The record holds no secret. Of the program's head, it holds only method, host, path and request ID.
public struct RequestRecord: Sendable {
    /// Use of a credential.
    public enum Audit: String, Sendable {
        /// The upstream got the request with the credential.
        case given
        /// The program got a placeholder.
        case issued
        /// The program got a token.
        case exported
        /// The proxy answered itself, and no upstream got the credential.
        case denied
    }

    /// Method as received, which may be any token of RFC 9110; empty for a malformed head without a method.
    public var method: [UInt8] = []
    /// Path as received, or `*`, in printable ASCII. No query: it may hold secrets. For a malformed head, the bytes
    /// before the mistake.
    public var path: [UInt8] = []
    /// Authority of the destination; the requested authority if the request was not forwarded. Printable ASCII.
    public var host: [UInt8] = []
    /// Status of the answer; 499 if the program left before the answer, 0 if the answer was cut.
    public var status = 0
    /// `grpc-status` of a gRPC call; `nil` for other requests, and for a call without this field.
    public var grpcStatus: UInt16?
    public var bytesSent: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Wall-clock time at which the request's head was read.
    public var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// Time from `startedAt` to the end of the answer or the connection. All times here have a loop turn's precision.
    public var duration = Duration.zero
    /// Total wait for tokens; `nil` if the request did not wait for a token.
    public var tokenWait: Duration?
    /// Time until the last attempt had its new connection: wait for a free slot, name look-up, TCP, TLS. `nil` for an
    /// idle connection, and if no connection was made.
    public var connect: Duration?
    /// Time from the connection to the head of the upstream's final answer; `nil` without an answer.
    public var firstByte: Duration?
    /// Whether the connection to the upstream had served an earlier request; `nil` without a connection.
    public var isReused: Bool?
    /// Whether the request was sent more than once: with a new token, with a nonce, or after its connection broke.
    public var wasReplayed = false
    /// Why an answer that refused the proxy's credential passed instead of another try; `nil` for other answers.
    public var notReplayed: String?
    /// HTTP version of the program's request.
    public var version = HTTPVersion.http11
    /// Proxy Error Type (RFC 9209, section 2.3) of the proxy's own answer or of a cut answer. `nil` if the upstream's
    /// answer passed, or the program is the cause.
    public var errorClass: String?
    public var upstream: String?
    /// Index of the rule in the configuration's `upstreams`.
    public var rule: Int?
    /// The rule's OAuth client; `nil` for a rule without a client.
    public var client: String?
    /// Kinds and names of the credentials of a rule without a client, without values.
    public var injection: String?
    /// Use of a credential; `nil` if the request neither got a credential nor was denied it.
    public var audit: Audit?
    /// User of `proxy.users`.
    public var user: String?
    /// Subject of the caller's certificate, or its first alternative name; `nil` without a certificate.
    public var certificate: String?
    /// Reason for the proxy's own answer: the last word of the problem's `type`.
    public var reason: String?
    /// Fault of a malformed request, as a fixed sentence.
    public var cause: String?
    /// Identifier of the request in all logs: the program's, else the proxy's. Letters, digits and a few marks.
    public var requestID: [UInt8] = []
    /// Address of the listener; `nil` after it closed.
    public var listener: SocketAddress?
    /// Address of a TCP program.
    public var address: SocketAddress?
    /// Process of a program on a Unix socket.
    public var peer: PeerCredentials?

    // For the span.
    /// Trace of the request; `nil` if it is not recorded.
    package var traceID: TraceID?
    /// Origin of the upstream; `nil` when the request was not forwarded.
    var origin: Origin?
    var pathPrefix: [UInt8] = []
    /// Status seen by the program, even if the answer was cut later; 0 without an answer.
    var shownStatus = 0
    var isHTTP2 = false
    /// Times from `startedAt` to the token, to the connection, and to the final answer's head.
    var tokenCame: Duration?
    var connected: Duration?
    var answered: Duration?

    package init() {}
}
