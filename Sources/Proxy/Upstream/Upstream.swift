import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports

/// One upstream on one loop: its rules, its connections, and its client's token as sent. Loop's thread only.
final class Upstream {
    let rules: UpstreamRules
    private let carriers: CarrierPool
    /// HTTP/2 connections on these carriers.
    private let http2: HTTP2Pool
    private let exchanges: ExchangePool
    let client: Heimdallr?
    /// Whether the client is one of `client: auto`.
    let enrols: Bool
    let injected: InjectedValues
    private let timeouts: (response: Timeout, idle: Timeout)
    private let callTimeouts: (response: Timeout, idle: Timeout)
    var nonces = NonceList()
    /// Name under which the client tracks rejections of its token by this upstream.
    let resource: String
    /// Generation of the newest accepted token, on this loop.
    private var acceptedGeneration: UInt64 = 0
    /// A successor uses its connections.
    private var hasSuccessor = false

    /// - Parameters:
    ///   - client: client of `settings.client`.
    ///   - fixed: other injected values, by the entries of `inject`; already started.
    ///   - former: predecessor with the same settings, whose connections continue.
    init(
        _ rules: UpstreamRules, client: Heimdallr? = nil, fixed: [FixedCredential?] = [], options: PoolOptions,
        exchanges: ExchangePool, former: Upstream? = nil
    ) {
        self.rules = rules
        let settings = rules.settings
        timeouts = (Timeout(settings.responseTimeout), Timeout(settings.idleTimeout))
        callTimeouts = (Timeout(settings.callResponseTimeout), Timeout(settings.callIdleTimeout))
        self.client = client
        enrols = client?.enrols ?? false
        resource = "\(rules.index ?? 0) \(rules.name)"
        self.exchanges = exchanges
        carriers = former?.carriers ?? CarrierPool(options: options, loop: exchanges.loop)
        http2 = former?.http2 ?? HTTP2Pool(carriers, buffers: exchanges)
        injected = InjectedValues(settings.injections, rules.injection, fixed: fixed)
        former?.hasSuccessor = true
    }

    /// Deadlines of a request.
    func timeouts(isGRPC: Bool) -> (response: Timeout, idle: Timeout) { isGRPC ? callTimeouts : timeouts }

    /// All users of its connections know its successor.
    var isQuiet: Bool { hasSuccessor || carriers.isQuiet && http2.waiting == 0 }

    /// Number of connections that have to end before each request whose client still waits gets one.
    func shortage(http2: Bool) -> Int { http2 ? self.http2.shortage : carriers.shortage }

    /// Adds its current connections. Each pool counts once.
    func addConnections(to use: inout ConnectionUse, counted: inout Set<ObjectIdentifier>) {
        guard counted.insert(ObjectIdentifier(carriers)).inserted else { return }
        use.open += carriers.open
        use.idle += carriers.idle
        use.waiting += carriers.waiting + http2.waiting
    }

    /// Begins a request. Calls `began` with its stream before `delegate` gets any call.
    /// - Returns: the end, in place of `upstreamEnded`, where the request was over at once.
    func begin(
        _ request: consuming UpstreamRequest, for delegate: any UpstreamStreamDelegate,
        began: (any UpstreamStream) -> Void
    ) -> UpstreamEnd? {
        guard let origin = http2Origin(for: request) else {
            let exchange = exchanges.exchange()
            began(exchange)
            return exchange.start(request, over: carriers, delegate: delegate)
        }
        let exchange = HTTP2Exchange(request, delegate)
        began(exchange)
        return origin.begin(exchange)
    }

    /// Returns the HTTP/2 connections for a request; `nil`: it uses HTTP/1.1, as upgrades do.
    private func http2Origin(for request: UpstreamRequest) -> HTTP2Origin? {
        let use = rules.settings.http2
        guard use != .never, use != .calls || request.isGRPC, request.upload != .upgrade else { return nil }
        let isSecure = request.origin.scheme == .https
        // Without TLS the versions are not negotiated. gRPC calls need HTTP/2.
        guard use == .known || isSecure || request.isGRPC else { return nil }
        return http2.origin(.init(origin: request.origin, isKnown: use == .known || !isSecure))
    }

    /// Whether callers send their own tokens, which the proxy exchanges.
    var exchangesCallers: Bool { client?.exchangesCallers ?? false }

    /// The client's token, unless it is suspect here. Never waits.
    /// - Parameter client: the upstream's, or that of one caller.
    func currentToken(of client: Heimdallr?) -> AccessToken? { client?.currentToken(for: resource) }

    /// Reports a 401 for this token.
    /// - Returns: whether a newer token may come and the request is worth another try.
    func refused(_ token: AccessToken, of client: Heimdallr?, saysInvalid: Bool, isReplay: Bool) -> Bool {
        client?.refused(token, by: resource, saysInvalid: saysInvalid, isReplay: isReplay) ?? false
    }

    func accepted(_ token: AccessToken, of client: Heimdallr?, isReplay: Bool) {
        guard acceptedGeneration != token.generation || isReplay else { return }
        acceptedGeneration = token.generation
        client?.accepted(token, by: resource, isReplay: isReplay)
    }
}

extension PoolOptions {
    /// Options for connections to an upstream.
    /// - Parameter trustAnchors: the configuration's file, used beside the system's anchors.
    public init(upstream settings: UpstreamSettings, trustAnchors: String?) {
        self.init()
        connectTimeout = settings.connectTimeout
        maxConnections = settings.maxConnections
        maxConnectionAge = settings.maxConnectionAge
        nextProxy = NextProxy(settings.proxy)
        self.trustAnchors = TrustAnchors(own: settings.tls.caFile, extra: trustAnchors)
        certificateFile = settings.tls.certFile
        keyFile = settings.tls.keyFile
    }
}

extension PoolOptions.NextProxy {
    public init(_ setting: NextProxy) {
        switch setting {
        case .none: self = .none
        case .environment: self = .environment
        case .url(let url): self = .url(url)
        }
    }
}

extension PoolOptions.TrustAnchors {
    /// - Parameters:
    ///   - own: file of the peer, used alone.
    ///   - extra: file of the configuration, used beside the system's anchors.
    public init(own: String?, extra: String?) {
        self = own.map { .only(file: $0) } ?? extra.map { .systemAnd(file: $0) } ?? .system
    }
}
