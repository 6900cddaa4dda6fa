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
    public var duration = Duration.zero
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
    /// Who called, by TCP.
    public var address: SocketAddress?
    /// Who called, on a Unix socket.
    public var peer: PeerCredentials?

    init() {}
}
