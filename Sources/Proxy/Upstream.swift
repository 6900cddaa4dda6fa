import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

/// One upstream as one loop sees it: its rules, its connections, its client's token in the form it goes out in.
/// Loop's thread only.
final class Upstream {
    let settings: UpstreamSettings
    /// Its place in the configuration; `nil`: it is for hosts that the configuration does not name.
    let index: Int?
    /// In logs, metrics and answers.
    let name: String
    /// Its connections: we speak HTTP/1.1 on them.
    let carriers: CarrierPool
    /// libcurl's own engine, for HTTP/2; `nil`: not wanted.
    private let transfers: ConnectionPool?
    /// Its server does not offer HTTP/2, and is not asked again before.
    private var http1Until = LoopTime(nanoseconds: 0)
    let client: Heimdallr?
    private let authenticator: any ResourceRequestAuthenticator
    /// `nil`: the authority that was asked for, by https (a wildcard without `url`).
    private let fixed: Destination?
    let responseTimeout: Timeout
    let idleTimeout: Timeout
    /// Put in front of every path.
    let pathPrefix: [UInt8]
    /// Lower-case name of the field that carries the token; empty for a query parameter.
    let injectedField: [UInt8]
    let injectedParameter: [UInt8]

    private var credential: RequestCredential?
    private var credentialGeneration: UInt64 = 0
    /// What the client's token is judged by here.
    let resource: String
    /// The newest token that was taken, as this loop has seen it.
    private var acceptedGeneration: UInt64 = 0

    /// What is dialled and what the Host field says.
    struct Destination {
        let origin: Origin
        let host: [UInt8]
        let scheme: Scheme
        let authority: Authority

        init(scheme: Scheme, authority: Authority, serverName: String?) {
            self.scheme = scheme
            self.authority = authority
            origin = Origin(
                scheme: scheme == .https ? .https : .http, host: authority.host.description,
                port: authority.port(for: scheme), serverName: serverName)
            host = Array(origin.authority.utf8)
        }
    }

    /// - Parameter client: keeps the token of `settings.client`; `nil` where that is `nil`.
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(
        _ settings: UpstreamSettings, index: Int, client: Heimdallr?, trustAnchors: String?, own: OwnListeners,
        loop: EventLoop
    ) throws(TransportError) {
        self.settings = settings
        self.index = index
        responseTimeout = Timeout(settings.responseTimeout)
        idleTimeout = Timeout(settings.idleTimeout)
        self.client = client
        name = settings.host.description
        resource = "\(index) \(name)"
        var options = PoolOptions()
        options.connectTimeout = settings.connectTimeout
        options.maxConnections = settings.maxConnections
        options.maxConnectionAge = settings.maxConnectionAge
        options.nextProxy = PoolOptions.NextProxy(settings.proxy)
        options.trustAnchors = .init(own: settings.tls.caFile, extra: trustAnchors)
        options.certificateFile = settings.tls.certFile
        options.keyFile = settings.tls.keyFile
        options.addressPolicy.own = own
        carriers = CarrierPool(options: options, loop: loop)
        options.http2 = true
        transfers = settings.http2 ? try ConnectionPool(options: options, loop: loop) : nil
        fixed = settings.url.map { url in
            Destination(
                scheme: url.scheme == .https ? .https : .http, authority: url.authority,
                serverName: settings.tls.serverName)
        }
        pathPrefix = Array((settings.url?.path ?? "").utf8)
        switch settings.injection {
        case .header(let name, let scheme):
            authenticator = ResourceRequestAuthenticatorHTTPHeader(name: name, scheme: scheme)
            injectedField = Array(name.lowercased().utf8)
            injectedParameter = []
        case .query(let name):
            authenticator = ResourceRequestAuthenticatorQueryParameter(name: name)
            injectedField = []
            injectedParameter = Array(name.utf8)
        }
    }

    /// For hosts that the configuration does not name (`unmatched: forward`): unsigned, plain http, public addresses.
    init(
        unmatched proxy: ProxySettings, trustAnchors: String?, own: OwnListeners, loop: EventLoop
    ) throws(TransportError) {
        settings = UpstreamSettings(host: HostPattern(wildcard: true, host: .name("unmatched"), port: nil))
        index = nil
        responseTimeout = Timeout(settings.responseTimeout)
        idleTimeout = Timeout(settings.idleTimeout)
        name = "unmatched"
        client = nil
        resource = name
        authenticator = ResourceRequestAuthenticatorHTTPHeader()
        fixed = nil
        pathPrefix = []
        injectedField = []
        injectedParameter = []
        var options = PoolOptions()
        options.trustAnchors = .init(own: nil, extra: trustAnchors)
        options.addressPolicy.own = own
        options.addressPolicy.publicOnly = true
        options.addressPolicy.exceptions = proxy.privateNetworks.compactMap { AddressPolicy.Block($0) }
        carriers = CarrierPool(options: options, loop: loop)
        transfers = nil
    }

    /// Who carries a request over HTTP/2. Other protocols and plain http are for HTTP/1.1.
    func http2Pool(for request: UpstreamRequest, now: LoopTime) -> ConnectionPool? {
        guard let transfers, request.origin.scheme == .https, request.upload != .upgrade, now >= http1Until else {
            return nil
        }
        return transfers
    }

    /// Asked again as often as connections are made anew.
    func noteLackOfHTTP2(_ now: LoopTime) { http1Until = now + settings.maxConnectionAge }

    /// Where a request for `authority` goes.
    func destination(for authority: Authority, scheme: Scheme) -> Destination {
        fixed ?? Destination(scheme: scheme, authority: authority, serverName: settings.tls.serverName)
    }

    var hasFixedDestination: Bool { fixed != nil }

    /// The host that it is for; `nil` for a wildcard.
    var host: Authority? {
        settings.host.wildcard ? nil : Authority(host: settings.host.host, port: settings.host.port)
    }

    /// How its addresses look to who asked for it as `asked`; `nil`: they are left as they are.
    func addressMap(_ asked: AskedAddress, _ destination: Destination) -> AddressMap? {
        guard settings.rewrite else { return nil }
        return AddressMap(
            asked: asked, destination: destination, host: host, prefix: pathPrefix, keepsHost: settings.keepsHost,
            changesCookies: index != nil)
    }

    /// The client's token, unless it is suspect here. Never waits.
    func currentToken() -> AccessToken? { client?.currentToken(for: resource) }

    /// A 401 came with it.
    /// - Returns: whether a newer one is to be had, and the request worth another try.
    func refused(_ token: AccessToken, saysInvalid: Bool, isReplay: Bool) -> Bool {
        client?.refused(token, by: resource, saysInvalid: saysInvalid, isReplay: isReplay) ?? false
    }

    func accepted(_ token: AccessToken, isReplay: Bool) {
        guard acceptedGeneration != token.generation || isReplay else { return }
        acceptedGeneration = token.generation
        client?.accepted(token, by: resource, isReplay: isReplay)
    }

    /// Nothing of a token that has gone stays here.
    func forgetCredential() { credential = nil }

    var hasCredential: Bool { credential != nil }

    /// The token as it goes onto a request, made once per token.
    func credential(for token: AccessToken) -> RequestCredential {
        if let credential, credentialGeneration == token.generation { return credential }
        let made = authenticator.credential(for: token)
        credential = made
        credentialGeneration = token.generation
        return made
    }
}

extension UpstreamSettings {
    /// Requests stay below the path of `url`.
    var isConfined: Bool { url?.path.utf8.contains { $0 != UInt8(ascii: "/") } ?? false }

    /// It is not for the whole of its server.
    var isLimited: Bool { isConfined || !paths.isEmpty }
}

extension PoolOptions.NextProxy {
    /// For the leg that `setting` is about.
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
    ///   - own: those of the peer, which stand alone.
    ///   - extra: those of the whole configuration, beside the system's.
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
