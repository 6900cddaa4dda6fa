/// TLS towards one peer. All `nil`: the system's trust anchors, no client certificate.
public struct TLSSettings: Sendable, Equatable {
    /// Replaces the system's trust anchors for this peer.
    public var caFile: String?
    public var certFile: String?
    public var keyFile: String?
    /// Name for SNI and certificate checks instead of the host's.
    public var serverName: String?
    public init() {}
}

/// The next proxy of one leg.
public enum NextProxy: Sendable, Equatable {
    case none
    /// `https_proxy` / `http_proxy` / `no_proxy` of the process.
    case environment
    case url(String)
}
