public import Configuration
import CurlTransport
import HTTPMessage
public import Heimdallr
import Reactor

/// Where the proxy would send a request, told without sending it: by the same parser and the same table as requests.
public enum RouteExplanation: Sendable, Equatable {
    /// - Parameters:
    ///   - index: of the configuration's upstreams.
    ///   - destination: scheme and authority, and the path that is put in front.
    case upstream(index: Int, destination: String)
    /// The same, asked for at the upstream's own `listen`.
    case ownListener(index: Int, destination: String)
    /// `unmatched: forward`
    case unmatched(destination: String)
    /// The proxy answers by itself.
    case refused(status: Int, detail: String)
    /// It depends on who asks: the upstreams of some, the most specific first, then what everybody else gets.
    indirect case callers([RouteExplanation], others: RouteExplanation)

    /// - Parameter url: absolute, as a program would ask the proxy for it.
    public init(_ configuration: Configuration, method: String, url: String) {
        self.init(configuration, method: method, url: url, listeners: [], own: [])
    }

    /// - Parameters:
    ///   - listeners: upstreams' own, where they really are.
    ///   - own: all listeners of this process.
    init(
        _ configuration: Configuration, method: String, url: String, listeners: [UpstreamListener], own: OwnListeners
    ) {
        do throws(Problem) {
            self = try Self.explain(configuration, method, url, listeners, own)
        } catch {
            self.init(error)
        }
    }

    private static func explain(
        _ configuration: Configuration, _ method: String, _ url: String, _ listeners: [UpstreamListener],
        _ own: OwnListeners
    ) throws(Problem) -> RouteExplanation {
        let bytes = Array("\(method) \(url) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        let asked = try parse(bytes, maxBytes: configuration.proxy.maxHeaderBytes)
        let (scheme, authority) = (asked.scheme, asked.authority)
        let routes = RouteTable(configuration.upstreams)
        var listener: UpstreamListener?
        var found = routes.rules(for: authority, scheme: scheme)
        if found == nil, scheme == .http {
            listener = listeners.first { $0.isAt(authority) }
            found = listener?.rules
        }
        guard let rules = found else {
            guard configuration.proxy.unmatched == .forward else { throw Problem.unknownHost }
            if scheme == .https { throw Problem.schemeNotSupported }
            try judge(authority, configuration.proxy, own)
            return .unmatched(destination: "http://\(authority)")
        }
        let (path, method) = (asked.path.range, asked.method.range)
        switch rules.match(path: bytes.span.extracting(path), method: bytes.span.extracting(method), caller: nil) {
        case .upstream:
            let choices = rules.choices(path: bytes.span.extracting(path), method: bytes.span.extracting(method))
            var place = asked
            place.listener = listener?.authority
            place.climbs = PathRules.climbs(bytes.span.extracting(path))
            place.overridesMethod = Overrides.hasMethodParameter(bytes.span.extracting(path))
            let others = upstream(choices.others, place, configuration)
            guard !choices.some.isEmpty else { return others }
            return .callers(choices.some.map { upstream($0, place, configuration) }, others: others)
        case .notCovered: throw Problem.notCovered
        case .notForCaller: throw Problem.notForCaller
        case .ambiguousPath: throw Problem.ambiguousPath
        case .unknownHost: throw Problem.unknownHost
        }
    }

    /// - Parameter index: `nil`: there is none for who asks.
    private static func upstream(
        _ index: Int?, _ asked: Asked, _ configuration: Configuration
    ) -> RouteExplanation {
        guard let index else { return RouteExplanation(.notForCaller) }
        let settings = configuration.upstreams[index]
        if asked.isWholeServer, settings.isLimited { return RouteExplanation(.wholeServer) }
        if asked.climbs, settings.isConfined { return RouteExplanation(.climbingPath) }
        if asked.overridesMethod, !settings.methods.isEmpty { return RouteExplanation(.methodOverride) }
        if asked.isWholeServer, settings.client != nil, case .query = settings.injection {
            return RouteExplanation(.queryNeeded)
        }
        let isOwn = asked.listener != nil
        if let url = settings.url {
            if asked.scheme == .https, url.scheme != .https { return RouteExplanation(.schemeNotSupported) }
            return isOwn
                ? .ownListener(index: index, destination: url.description)
                : .upstream(index: index, destination: url.description)
        }
        var wanted = asked.listener ?? asked.authority
        if wanted.port == 80 { wanted.port = nil }
        let destination = "https://\(wanted)"
        return isOwn
            ? .ownListener(index: index, destination: destination) : .upstream(index: index, destination: destination)
    }

    /// As far as it can be said without asking for the name's addresses.
    private static func judge(
        _ authority: Authority, _ settings: ProxySettings, _ own: OwnListeners
    ) throws(Problem) {
        var host = authority.host.description
        if host.hasPrefix("[") { host = String(host.dropFirst().dropLast()) }
        guard let address = SocketAddress(numericHost: host, port: authority.port(for: .http)) else { return }
        var policy = AddressPolicy()
        policy.own = own
        policy.publicOnly = true
        policy.exceptions = settings.privateNetworks.compactMap { AddressPolicy.Block($0) }
        switch policy.judge(address) {
        case .allowed: return
        case .denied: throw Problem(TransportError(.addressDenied, message: ""))
        case .own: throw Problem.loop
        }
    }

    private init(_ problem: Problem) {
        self = .refused(status: problem.status, detail: problem.detail)
    }

    private struct Asked {
        var method: ByteRange
        var scheme: Scheme
        var authority: Authority
        var path: ByteRange
        /// RFC 9112, section 3.2.4.
        var isWholeServer: Bool
        /// The upstream's own authority, where its own listener is asked.
        var listener: Authority?
        var climbs = false
        var overridesMethod = false
    }

    private static func parse(_ bytes: [UInt8], maxBytes: Int) throws(Problem) -> Asked {
        var head = RequestHead()
        do throws(MessageError) {
            let limits = HeadLimits(maxBytes: maxBytes, maxFields: 1)
            guard case .complete = try head.parse(bytes.span, limits: limits), head.methodKind != .connect,
                case .absolute(let scheme, let range, let path) = try RequestTarget(parsing: bytes.span, head: head)
            else { throw MessageError(detail: "Give a method and an absolute URL: GET http://HOST/PATH.") }
            return Asked(
                method: head.method, scheme: scheme, authority: try Authority(parsing: bytes.span, range), path: path,
                isWholeServer: head.methodKind == .options && path.isEmpty)
        } catch {
            // Without what becomes of a connection: there is none.
            throw Problem(error.status, "http_request_error", "malformed-request", "", error.detail)
        }
    }
}

extension ProxyServer {
    /// Where a request would go, asked for through `proxy.listen`.
    /// - Parameter url: absolute, as a program would ask the proxy for it.
    public func explain(method: String, url: String) -> RouteExplanation {
        RouteExplanation(configuration, method: method, url: url, listeners: baseURLs, own: own)
    }
}

/// What a program gets that wants a token which can't be had.
public struct RefusedRequest: Sendable, Equatable {
    public let status: Int
    public let title: String
    /// Where a browser begins the login that is wanted.
    public let loginURL: String?

    public init(_ error: HeimdallrError, client: String, signIn: SignInHint) {
        let problem = Problem(error, client: client) { _ in signIn }
        status = problem.status
        title = problem.title
        loginURL = problem.loginURL
    }
}
