/// TLS settings for connections to a peer. Defaults: the system's trust anchors, no client certificate.
public struct TLSSettings: Sendable, Equatable {
    /// PEM file that replaces the system's trust anchors for this peer.
    public var caFile: String?
    public var certFile: String?
    public var keyFile: String?
    /// Name for SNI and certificate checks; `nil` for the host's name.
    public var serverName: String?
    public init() {}
}
