import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports

/// One upstream on one loop: its rules, its connections, and its injected values. Loop's thread only.
final class Upstream {
    let rule: UpstreamRule
    private let carriers: CarrierPool
    /// HTTP/2 connections, which are made by `carriers`.
    private let http2: HTTP2Pool
    private let streams: UpstreamStreamPool
    let client: Heimdallr?
    /// Whether the upstream has `client: auto`.
    let enrols: Bool
    let injected: InjectedValues
    private let timeouts: (response: Timeout, idle: Timeout)
    /// Timeouts of gRPC calls. Event streams and upgraded connections have the same `idle`.
    private let callTimeouts: (response: Timeout, idle: Timeout)
    var nonces = NonceList()
    /// Verdicts of the API on the injected credential.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var credentialRecord = CredentialRecord()
    /// Name under which the client tracks rejections of its token by this upstream.
    let resource: String
    /// Generation of the token accepted last on this loop.
    private var acceptedGeneration: UInt64 = 0
    /// Whether a successor has taken over the connections.
    var hasSuccessor = false

    /// - Parameters:
    ///   - client: OAuth client that `settings.client` names.
    ///   - fixed: values of the entries of `inject`, with `nil` for tokens. Their reading has begun.
    ///   - former: predecessor with the same settings. Its connections are taken over.
    init(
        _ rule: UpstreamRule, client: Heimdallr? = nil, fixed: [FixedCredential?] = [], options: PoolOptions,
        streams: UpstreamStreamPool, former: Upstream? = nil
    ) {
        self.rule = rule
        let settings = rule.settings
        timeouts = (Timeout(settings.responseTimeout), Timeout(settings.idleTimeout))
        callTimeouts = (Timeout(settings.callResponseTimeout), Timeout(settings.callIdleTimeout))
        self.client = client
        enrols = client?.enrols ?? false
        resource = "\(rule.index ?? 0) \(rule.name)"
        self.streams = streams
        carriers = former?.carriers ?? CarrierPool(options: options, loop: streams.loop)
        http2 = former?.http2 ?? HTTP2Pool(carriers, buffers: streams)
        injected = InjectedValues(settings.injections, rule.injection, fixed: fixed)
        if let former { credentialRecord = former.credentialRecord }
        former?.hasSuccessor = true
    }

    /// Returns the timeouts of a request.
    func timeouts(isCall: Bool) -> (response: Timeout, idle: Timeout) { isCall ? callTimeouts : timeouts }

    /// Whether no connection is busy and no request waits, or a successor has taken the connections over.
    var isQuiet: Bool { hasSuccessor || hasQuietConnections }
    var hasQuietConnections: Bool { carriers.isQuiet && http2.waiting == 0 }

    /// Returns the number of requests with a present program that wait until other requests end.
    func shortage(http2: Bool) -> Int { http2 ? self.http2.shortage : carriers.shortage }

    /// Adds the current connections, unless `counted` already contains their pool.
    func addConnections(to use: inout ConnectionUse, counted: inout Set<ObjectIdentifier>) {
        guard counted.insert(ObjectIdentifier(carriers)).inserted else { return }
        use.open += carriers.open
        use.idle += carriers.idle
        use.waiting += carriers.waiting + http2.waiting
    }

    /// Begins a request. Calls `began` with its stream before any call to `delegate`.
    /// - Returns: the end, if the request ended at once. `upstreamEnded` is then not called.
    func begin(
        _ request: consuming UpstreamRequest, for delegate: any UpstreamStreamDelegate,
        began: (any UpstreamStream) -> Void
    ) -> UpstreamEnd? {
        guard let origin = http2Origin(for: request) else {
            let exchange = streams.stream()
            began(exchange)
            return exchange.start(request, over: carriers, delegate: delegate)
        }
        let exchange = HTTP2UpstreamStream(request, delegate)
        began(exchange)
        return origin.begin(exchange)
    }

    /// Returns the HTTP/2 connections for a request; `nil` if it uses HTTP/1.1, as upgrades do.
    private func http2Origin(for request: UpstreamRequest) -> HTTP2Origin? {
        let use = rule.settings.http2
        guard use != .never, use != .calls || request.isGRPC, !request.offersUpgrade else { return nil }
        // A login belongs to a connection over HTTP/1.1 only.
        guard request.bond == nil || use == .known || request.isGRPC else { return nil }
        let isSecure = request.origin.scheme == .https
        // Without TLS, no version is negotiated. HTTP/2 is then only for `known`, and for gRPC calls, which need it.
        guard use == .known || isSecure || request.isGRPC else { return nil }
        return http2.origin(.init(origin: request.origin, isKnown: use == .known || !isSecure))
    }

    /// Whether callers send their own tokens, which the proxy exchanges.
    var exchangesCallers: Bool { client?.exchangesCallers ?? false }

    /// Returns the client's token, unless it is suspect at this upstream. Never waits.
    /// - Parameter client: client of the upstream, or of one caller.
    func currentToken(of client: Heimdallr?) -> AccessToken? { client?.currentToken(for: resource) }

    /// Reports a 401 or UNAUTHENTICATED for this token.
    /// - Returns: whether a newer token may come, so that the request should be replayed.
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
    /// - Parameter trustAnchors: file of the configuration, used in addition to the system's anchors.
    public init(upstream settings: UpstreamSettings, trustAnchors: String?) {
        self.init()
        connectTimeout = settings.connectTimeout
        maxConnections = settings.maxConnections
        maxConnectionAge = settings.maxConnectionAge
        nextProxy = settings.proxy
        self.trustAnchors = TrustAnchors(own: settings.tls.caFile, extra: trustAnchors)
        certificateFile = settings.tls.certFile
        keyFile = settings.tls.keyFile
        http2 = HTTP2(settings.http2)
    }
}

extension PoolOptions.HTTP2 {
    public init(_ use: HTTP2Use) {
        switch use {
        case .never, .calls: self = .never
        case .offered: self = .offered
        case .known: self = .known
        }
    }
}

extension PoolOptions.TrustAnchors {
    /// - Parameters:
    ///   - own: file for this peer, used alone.
    ///   - extra: file of the configuration, used in addition to the system's anchors.
    public init(own: String?, extra: String?) {
        self = own.map { .only(file: $0) } ?? extra.map { .systemAnd(file: $0) } ?? .system
    }
}
