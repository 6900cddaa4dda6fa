import HTTPMessage

/// A rule: its requests, their target and their credentials.
public struct UpstreamSettings: Sendable, Equatable {
    public enum OnExisting: String, Sendable, Equatable, CaseIterable { case replace, keep, reject }
    public enum OnUnauthorized: String, Sendable, Equatable, CaseIterable { case replay, pass }

    /// Canonical host: `api.example.com`, `*.example.com`, `[::1]:8443`. Also the upstream's name in logs and metrics.
    public var host: HostPattern
    /// Path prefixes of whole segments; empty for every path.
    public var paths: [String] = []
    /// Methods; empty for every method.
    public var methods: [String] = []
    /// Conditions on the request's fields; empty for none.
    public var fields: [FieldRule] = []
    public var callers = Callers()
    /// Name of the OAuth client; `nil` if requests get no token.
    public var client: String?
    /// Whether the API's metadata and challenges are hidden from programs (`auto.discovery`).
    public var hidesDiscovery = false
    /// Whether the upstream gets another certificate than the one to which its tokens are bound.
    public var usesOtherCertificate = false
    public var listen: ListenAddress?
    /// TLS settings of `listen`.
    public var listenerTLS: ListenerTLS?
    /// Additional `Host` values for the upstream's own `listen`.
    public var hosts: [Authority] = []
    public var browsers = false
    /// Whether TLS inside CONNECT is intercepted, so that requests get credentials. Also set by `proxy.intercept`.
    public var intercepts = false
    /// Files of the certificate for intercepted TLS; `nil` if the proxy makes the certificate.
    public var serverCertificate: ListenerTLS?
    /// The target; `nil` for a wildcard host without `url`, which means https to the requested host.
    public var url: UpstreamURL?
    /// The injected values, including the client's token; empty if requests are forwarded unsigned.
    public var injections: [Injection] = []
    /// Text that the credential replaces. Requests without this text get no credential. `nil` if no text is required.
    /// `issued` stands for the placeholders that `issue` gives out.
    public var placeholder: String?
    public static let issuedWord = "issued"
    public var takesIssued: Bool { placeholder == Self.issuedWord }
    /// Token requests that the proxy answers itself, the first fitting entry wins; empty if requests are forwarded.
    public var issue: [IssueSettings] = []
    /// The metadata service that the proxy plays here; `nil` if requests are forwarded.
    public var metadata: MetadataSettings?
    /// Whether the client's tokens are bound to a key, so that each request needs a DPoP proof (RFC 9449).
    public var provesPossession = false
    public var onExisting = OnExisting.replace
    public var onUnauthorized = OnUnauthorized.replay
    /// Answers besides 401 that reject the token; `nil` for none.
    public var tokenRejected: TokenRejection?
    public var maxReplayBytes = 64 * 1024
    public var allowDeprecated = false
    public var allowPlaintext = false
    /// Whether the upstream's addresses in answers are rewritten for the program, and back in requests.
    public var rewrite = true
    /// Whether the upstream receives the program's own `Host`.
    public var keepsHost = false
    /// Whether requests and answers get a `Via` field. If not, requests get `CDN-Loop`, so that circles are found.
    public var addsVia = true
    /// Fields that replace the program's fields of the same names.
    public var setHeaders: [NameValue] = []
    /// Names of the program's fields that are removed.
    public var removeHeaders: [String] = []
    public var tokenWait = Duration.seconds(10)
    public var connectTimeout = Duration.seconds(5)
    /// `nil` for no timeout.
    public var responseTimeout: Duration? = .seconds(60)
    /// `nil` for no timeout.
    public var idleTimeout: Duration? = .seconds(60)
    /// `responseTimeout` for gRPC calls, whose streams may be silent for long. `nil` unless `response_timeout` is set.
    public var callResponseTimeout: Duration?
    /// `idleTimeout` for gRPC calls, event streams and upgraded connections; `nil` unless `idle_timeout` is set.
    public var callIdleTimeout: Duration?
    public var maxConnections = 256
    public var maxConnectionAge = Duration.seconds(300)
    public var http2 = HTTP2Use.calls
    public var proxy = NextProxy.none
    public var tls = TLSSettings()

    public init(host: HostPattern) { self.host = host }
}
