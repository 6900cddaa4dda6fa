import CurlTransport
public import HTTPMessage
import Reactor

/// Facts of one finished request, for the access log, the audit stream and the span. A plain value.
///
/// It holds no secret. It holds method, host, path and request ID of the program's head, and nothing else of it.
public struct RequestRecord: Sendable {
    /// Use of a credential.
    public enum Audit: String, Sendable {
        /// The request went to the upstream with the credential.
        case given
        /// The proxy answered itself, and no upstream got the credential.
        case denied
    }

    /// As received, so any token of RFC 9110; empty if none could be read.
    public var method: [UInt8] = []
    /// Path without the query, which may hold secrets; `*` of OPTIONS. Printable ASCII, as received. For a malformed head, the
    /// bytes before the mistake.
    public var path: [UInt8] = []
    /// Authority of the destination, or of a request that was not sent the requested one. Printable ASCII.
    public var host: [UInt8] = []
    /// 499 if the client left before the answer, 0 if the answer was cut.
    public var status = 0
    /// `grpc-status` of a gRPC call; `nil` for other requests, and for a call without one.
    public var grpcStatus: UInt16?
    public var bytesSent: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Wall-clock time at which the request's head was read.
    public var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// From then to the end of the answer, or of the connection. Measured in turns of the loop, like all times here.
    public var duration = Duration.zero
    /// Total wait for tokens; `nil` if a token was in memory, or none was needed.
    public var tokenWait: Duration?
    /// Wait for a connection to the upstream in the last attempt: a free connection, names, TCP, TLS. `nil` for a kept-alive
    /// connection, or none.
    public var connect: Duration?
    /// From the connection to the head of the upstream's final answer; `nil` without an answer.
    public var firstByte: Duration?
    /// The connection to the upstream had served another request; `nil` without a connection.
    public var isReused: Bool?
    /// The request was sent more than once: with a new token, with a nonce, or after its connection broke.
    public var wasReplayed = false
    /// HTTP version of the program's request.
    public var version = HTTPVersion.http11
    /// Proxy Error Type (RFC 9209, section 2.3) of `Proxy-Status`, or of a cut answer. `nil` if nothing failed except the
    /// client.
    public var errorClass: String?
    public var upstream: String?
    /// Index of the rule in the configuration's `upstreams`.
    public var rule: Int?
    /// Client of the token; `nil` for a rule without a client.
    public var client: String?
    /// Kinds and names of the credentials of a rule without a client, without values.
    public var injection: String?
    /// `nil` if the request was neither given a credential nor denied one.
    public var audit: Audit?
    /// User of `proxy.users`.
    public var user: String?
    /// Subject of the caller's certificate, or its first alternative name; `nil` where it showed none.
    public var certificate: String?
    /// Reason for the proxy's own answer: the last word of the problem's `type`.
    public var reason: String?
    /// Fault of a malformed request, as a fixed sentence.
    public var cause: String?
    /// Identifier of the request in all logs: the program's, else ours. Letters, digits and a few marks.
    public var requestID: [UInt8] = []
    /// Address of the listener; `nil` after it closed.
    public var listener: SocketAddress?
    /// Address of a TCP client.
    public var address: SocketAddress?
    /// Client on a Unix socket.
    public var peer: PeerCredentials?

    // For the span.
    /// `nil` if the request's trace is not recorded.
    package var traceID: TraceID?
    /// Origin of the upstream; `nil` when the request was not forwarded.
    var origin: Origin?
    var pathPrefix: [UInt8] = []
    /// Status seen by the client, also of a cut answer; 0 without an answer.
    var shownStatus = 0
    var isHTTP2 = false
    /// Times since the start.
    var tokenCame: Duration?
    var connected: Duration?
    var answered: Duration?

    package init() {}
}
