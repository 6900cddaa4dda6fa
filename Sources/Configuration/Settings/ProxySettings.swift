import HTTPMessage

/// Settings of the listeners for programs, and limits for requests.
public struct ProxySettings: Sendable, Equatable {
    public enum Unmatched: String, Sendable, Equatable, CaseIterable { case reject, forward }
    public enum Connect: String, Sendable, Equatable, CaseIterable { case reject, tunnel }

    public var listen: [ListenAddress] = [.tcp(host: "127.0.0.1", port: 8080)]
    /// TLS settings of listeners, by the `endpoint` of their address.
    public var listenerTLS: [ListenAddress: ListenerTLS] = [:]
    public var threads = 1
    public var open = false
    public var users: [String: SecretSource] = [:]
    public var unmatched = Unmatched.reject
    public var connect = Connect.reject
    public var tunnels: [TunnelRule] = []
    /// Default of `intercepts` at upstreams with an exact host.
    public var intercepts = false
    public var privateNetworks: [AddressBlock] = []
    public var headerTimeout = Duration.seconds(10)
    public var idleTimeout = Duration.seconds(60)
    public var maxHeaderBytes = 64 * 1024
    /// `nil` for no limit.
    public var maxBodyBytes: Int?
    public var maxConnections = 1024
    public var drainTimeout = Duration.seconds(8)
    /// Time after SIGTERM in which the proxy reports "not ready" but still accepts connections.
    public var drainDelay = Duration.zero
}
