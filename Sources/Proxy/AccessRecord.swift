import Reactor

/// What the access log says of one request. A plain value: it is written elsewhere than on the loop.
public struct AccessRecord: Sendable {
    /// As received, so any token of RFC 9110; empty when none could be read.
    public var method: [UInt8] = []
    /// Without the query, which may hold secrets; `*` of OPTIONS. As received: printable ASCII. Of a malformed head, what
    /// came before the mistake.
    public var path: [UInt8] = []
    /// The authority that it went to; of what went nowhere, the one that was asked for. Printable ASCII.
    public var host: [UInt8] = []
    /// 499: the client left before the answer; 0: the answer was cut.
    public var status = 0
    public var bytesSent: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// When the request's head was read, by the clock of the machine.
    public var startedAt = WallTime(seconds: 0, nanoseconds: 0)
    /// From then to the end of the answer, or of the connection. Like all times here, in turns of the loop.
    public var duration = Duration.zero
    /// How long tokens were waited for, all in all; `nil`: one was at hand, or none was wanted.
    public var tokenWait: Duration?
    /// How long a connection to the upstream was waited for, in the last try: for a free place, names, TCP, TLS. `nil`: a
    /// kept-alive one was at hand, or there never was one.
    public var connect: Duration?
    /// From then to the head of the upstream's answer, interim ones aside; `nil`: there was no answer.
    public var firstByte: Duration?
    /// The connection to the upstream had served others; `nil`: there never was one.
    public var isReused: Bool?
    /// The upstream was asked more than once: with a new token, with its nonce, or since its connection had died.
    public var wasReplayed = false
    /// What failed, as a Proxy Error Type (RFC 9209, section 2.3): what `Proxy-Status` says, and what became of an answer
    /// that was cut. `nil`: nothing did, but for what the client did.
    public var errorClass: String?
    public var upstream: String?
    public var client: String?
    /// Of `proxy.users`.
    public var user: String?
    /// Why the proxy answered by itself: the last word of the problem's `type`.
    public var reason: String?
    /// What is wrong with a request that can't be understood: a fixed sentence.
    public var cause: String?
    /// By what name it is found elsewhere, too: the program's, else ours. Letters, digits and a few marks.
    public var requestID: [UInt8] = []
    /// The trace that the request belongs to; `nil`: it is not recorded.
    package var traceID: TraceID?
    /// Who called, by TCP.
    public var address: SocketAddress?
    /// Who called, on a Unix socket.
    public var peer: PeerCredentials?

    package init() {}
}
