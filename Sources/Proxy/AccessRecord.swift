import Reactor

/// What the access log says of one request. A plain value: it is written elsewhere than on the loop.
public struct AccessRecord: Sendable {
    /// As received, so any token of RFC 9110; empty when the request could not be read.
    public var method: [UInt8] = []
    /// Without the query, which may hold secrets. As received: printable ASCII.
    public var path: [UInt8] = []
    /// The host that was asked for, as received: printable ASCII.
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
    /// Who called, on a Unix socket.
    public var peer: PeerCredentials?

    init() {}
}
