public import Configuration
import CurlTransport
import HTTPMessage
public import Heimdallr
import Reactor

/// Where the proxy would send a request, told without sending it: by the same parser and the same gate as requests.
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
        let head = try parse(bytes, maxBytes: configuration.proxy.maxHeaderBytes)
        var gate = Gate(configuration, routes: RouteTable(configuration.upstreams), baseURLs: listeners)
        let place = configuration.proxy.listen.first?.place ?? .unix(path: "", mode: nil)
        var situation = Gate.Situation(role: .forward(place))
        func answer() -> RouteExplanation {
            do throws(Problem) {
                return try ask(&gate, head, bytes, situation, configuration.proxy, own)
            } catch {
                return RouteExplanation(error)
            }
        }
        guard let choices = gate.choices(head, bytes.span), !choices.some.isEmpty else { return answer() }
        var some: [RouteExplanation] = []
        for choice in choices.some {
            situation.assumed = .upstream(choice)
            some.append(answer())
        }
        situation.assumed = choices.others.map { .upstream($0) } ?? .notForCaller
        return .callers(some, others: answer())
    }

    private static func ask(
        _ gate: inout Gate, _ head: RequestHead, _ bytes: [UInt8], _ situation: Gate.Situation,
        _ settings: ProxySettings, _ own: OwnListeners
    ) throws(Problem) -> RouteExplanation {
        var admitted = Admitted()
        guard case .forward = try gate.admit(head, bytes.span, situation, &admitted), let rules = admitted.rules,
            let destination = admitted.destination
        else { throw .internalError }
        let address = "\(destination.scheme.rawValue)://\(destination.authority)"
        guard let index = rules.index else {
            try judge(destination.authority, settings, own)
            return .unmatched(destination: address)
        }
        let shown = rules.settings.url?.description ?? address
        return admitted.asked?.isBaseURL == true
            ? .ownListener(index: index, destination: shown) : .upstream(index: index, destination: shown)
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
        policy.exceptions = settings.privateNetworks.map { AddressPolicy.Block($0) }
        switch policy.judge(address) {
        case .allowed: return
        case .denied: throw Problem(TransportError(.addressDenied, message: ""))
        case .own: throw Problem.loop
        }
    }

    private init(_ problem: Problem) {
        self = .refused(status: problem.status, detail: problem.detail)
    }

    private static func parse(_ bytes: [UInt8], maxBytes: Int) throws(Problem) -> RequestHead {
        var head = RequestHead()
        do throws(MessageError) {
            let limits = HeadLimits(maxBytes: maxBytes, maxFields: 1)
            guard case .complete = try head.parse(bytes.span, limits: limits), head.methodKind != .connect,
                case .absolute = try RequestTarget(parsing: bytes.span, head: head)
            else { throw MessageError(detail: "Give a method and an absolute URL: GET http://HOST/PATH.") }
        } catch {
            // Without what becomes of a connection: there is none.
            throw Problem(error.status, "http_request_error", "malformed-request", "", error.detail)
        }
        return head
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
