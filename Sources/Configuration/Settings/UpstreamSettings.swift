import HTTPMessage

/// One rule: its requests, their target and their token.
public struct UpstreamSettings: Sendable, Equatable {
    public enum OnExisting: String, Sendable, Equatable, CaseIterable { case replace, keep, reject }
    public enum HTTP2Use: Sendable, Equatable {
        /// Only for gRPC calls.
        case calls
        case never
        /// Over https, if the server agrees (ALPN).
        case offered
        /// Always, with prior knowledge.
        case known
    }
    public enum OnUnauthorized: String, Sendable, Equatable, CaseIterable { case replay, pass }

    /// `api.example.com`, `*.example.com`, `[::1]:8443`, canonical. Also the upstream's name in logs and metrics.
    public var host: HostPattern
    /// Whole-segment prefixes; empty: every path.
    public var paths: [String] = []
    /// Empty: every method.
    public var methods: [String] = []
    /// Conditions on the request's fields; empty: none.
    public var fields: [FieldRule] = []
    public var callers = Callers()
    /// Name of the OAuth client; `nil`: forwarded unsigned.
    public var client: String?
    /// Whether the API's metadata and challenges are hidden from programs (`auto.discovery`).
    public var hidesDiscovery = false
    /// Whether the upstream gets another client certificate than the one that the tokens of `client` are bound to.
    public var showsForeignCertificate = false
    public var listen: ListenAddress?
    /// TLS of `listen`.
    public var listenerTLS: ListenerTLS?
    /// Additional `Host` values for the upstream's own `listen`.
    public var hosts: [Authority] = []
    public var browsers = false
    /// Whether TLS inside CONNECT is opened, so that its requests can be signed. Also set by `proxy.intercept`.
    public var intercepts = false
    /// Files of the certificate for programs; `nil`: the proxy makes one.
    public var serverCertificate: ListenerTLS?
    /// The target. `nil` for a wildcard host without `url`: https to the requested host.
    public var url: UpstreamURL?
    /// The injected values, including the client's token; empty when requests are forwarded unsigned.
    public var injections: [Injection] = []
    /// Only requests with this text are signed, in its place.
    public var placeholder: String?
    /// Whether the client's tokens are bound to a key, so that each request carries a proof (RFC 9449).
    public var provesPossession = false
    public var onExisting = OnExisting.replace
    public var onUnauthorized = OnUnauthorized.replay
    public var maxReplayBytes = 64 * 1024
    public var allowDeprecated = false
    public var allowPlaintext = false
    /// Whether the upstream's addresses are rewritten for the program, and back.
    public var rewrite = true
    /// Whether the upstream receives the program's own `Host`.
    public var keepsHost = false
    /// Fields that each request gets in place of the program's.
    public var setHeaders: [NameValue] = []
    /// Names of the program's fields that the upstream does not get.
    public var removeHeaders: [String] = []
    public var tokenWait = Duration.seconds(10)
    public var connectTimeout = Duration.seconds(5)
    /// `nil`: off.
    public var responseTimeout: Duration? = .seconds(60)
    /// `nil`: off.
    public var idleTimeout: Duration? = .seconds(60)
    /// The same for gRPC calls, whose streams may be silent for long: `nil` unless the configuration says it.
    public var callResponseTimeout: Duration?
    public var callIdleTimeout: Duration?
    public var maxConnections = 256
    public var maxConnectionAge = Duration.seconds(300)
    public var http2 = HTTP2Use.calls
    public var proxy = NextProxy.none
    public var tls = TLSSettings()

    public init(host: HostPattern) { self.host = host }
}
