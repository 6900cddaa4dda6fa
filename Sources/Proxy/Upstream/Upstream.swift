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
    /// libcurl's own engine, for HTTP/2; `nil` without `http2`.
    private let transfers: ConnectionPool?
    /// Time until which HTTP/2 is not tried, because the server does not offer it.
    private var http1Until = LoopTime(nanoseconds: 0)
    private let exchanges: ExchangePool
    let client: Heimdallr?
    /// Whether the API names the client's server itself: `client: auto`.
    let enrols: Bool
    let injected: InjectedValues
    let responseTimeout: Timeout
    let idleTimeout: Timeout
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
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(
        _ rules: UpstreamRules, client: Heimdallr? = nil, fixed: [FixedCredential?] = [], options: PoolOptions,
        exchanges: ExchangePool, former: Upstream? = nil
    ) throws(TransportError) {
        var options = options
        self.rules = rules
        let settings = rules.settings
        responseTimeout = Timeout(settings.responseTimeout)
        idleTimeout = Timeout(settings.idleTimeout)
        self.client = client
        enrols = client?.enrols ?? false
        resource = "\(rules.index ?? 0) \(rules.name)"
        self.exchanges = exchanges
        carriers = former?.carriers ?? CarrierPool(options: options, loop: exchanges.loop)
        options.http2 = true
        if settings.http2 {
            transfers =
                if let kept = former?.transfers { kept } else {
                    try ConnectionPool(options: options, loop: exchanges.loop)
                }
        } else {
            transfers = nil
        }
        injected = InjectedValues(settings.injections, rules.injection, fixed: fixed)
        http1Until = former?.http1Until ?? http1Until
        former?.hasSuccessor = true
    }

    /// All users of its connections know its successor.
    var isQuiet: Bool { hasSuccessor || carriers.isQuiet && (transfers?.load ?? 0) == 0 }

    /// Number of connections that have to end before each request whose client still waits gets one.
    func shortage(http2: Bool) -> Int { http2 ? transfers?.shortage ?? 0 : carriers.shortage }

    /// Adds its current connections. Each pool counts once.
    func addConnections(to use: inout ConnectionUse, counted: inout Set<ObjectIdentifier>) {
        if counted.insert(ObjectIdentifier(carriers)).inserted {
            use.open += carriers.open
            use.idle += carriers.idle
            use.waiting += carriers.waiting
        }
        guard let transfers, counted.insert(ObjectIdentifier(transfers)).inserted else { return }
        use.open += transfers.open
        use.idle += transfers.idleConnections
        use.waiting += transfers.waitingCount
    }

    /// Begins a request. Calls `began` with its stream before `delegate` gets any call.
    /// - Returns: the end, in place of `upstreamEnded`, where the request was over at once.
    func begin(
        _ request: consuming UpstreamRequest, for delegate: any UpstreamStreamDelegate,
        began: (any UpstreamStream) -> Void
    ) -> UpstreamEnd? {
        guard let pool = http2Pool(for: request) else {
            let exchange = exchanges.exchange()
            began(exchange)
            return exchange.start(request, over: carriers, delegate: delegate)
        }
        do throws(TransportError) {
            let exchange = try TransferredExchange(request, over: pool, delegate: delegate)
            began(exchange)
            try exchange.start()
            return nil
        } catch {
            return UpstreamEnd(error: error)
        }
    }

    /// Pool for a request over HTTP/2; `nil` for HTTP/1.1, which also carries other protocols and plain http.
    private func http2Pool(for request: UpstreamRequest) -> ConnectionPool? {
        guard let transfers, request.origin.scheme == .https, request.upload != .upgrade,
            exchanges.loop.now >= http1Until
        else { return nil }
        return transfers
    }

    /// The next try of HTTP/2 comes after the maximum age of connections.
    func noteLackOfHTTP2(_ now: LoopTime) { http1Until = now + rules.settings.maxConnectionAge }

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
        if let own {
            self = .only(file: own)
        } else if let extra {
            self = .systemAnd(file: extra)
        } else {
            self = .system
        }
    }
}
