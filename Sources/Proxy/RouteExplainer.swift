import Configuration
import CurlTransport
import HTTPMessage
import Reactor
import Reports
import WireText

/// Explains, for `why` and `check`, what the proxy would do with a request. Uses the gate that judges real requests.
struct RouteExplainer {
    private var gate: Gate
    private let settings: ProxySettings
    private let upstreams: [UpstreamSettings]
    private let own: OwnListeners
    private let role: ListenerRole
    private let baseURLs: [UpstreamListener]

    /// - Parameters:
    ///   - listeners: listeners of upstreams, with actual addresses.
    ///   - own: all listeners of this process.
    init(_ configuration: Configuration, listeners: [UpstreamListener] = [], own: OwnListeners = OwnListeners()) {
        settings = configuration.proxy
        upstreams = configuration.upstreams
        gate = Gate(
            configuration, routes: RouteTable(configuration.upstreams), baseURLs: listeners,
            placeholders: PlaceholderGuard(configuration))
        self.own = own
        baseURLs = listeners
        role = .forward(settings.listen.first?.endpoint ?? .unix(path: "", mode: nil))
    }

    /// - Parameters:
    ///   - url: absolute URL, as a program gets it.
    ///   - fields: the request's further fields, `Name: value`.
    mutating func explain(method: String, url: String, fields: [String] = []) -> RouteExplanation {
        let text =
            "\(method) \(url) HTTP/1.1\r\n" + (["Host: localhost"] + fields + ["", ""]).joined(separator: "\r\n")
        do throws(Problem) {
            if method != "CONNECT", let authority = Self.tunnelled(url) {
                if let listener = baseURLs.first(where: { $0.isAt(authority, .https) }) {
                    return try explain(text, by: .upstream(listener))
                }
                guard case .connect(_, tls: .intercepted)? = try? admitConnect(to: authority.description) else {
                    return try explainTunnel(to: authority)
                }
                let inside = Inside(authority: authority, scheme: .https, credentials: nil)
                return try explain(text, inside: inside)
            }
            return try explain(text)
        } catch {
            return RouteExplanation(error)
        }
    }

    /// Returns the target of the CONNECT that programs send for an https URL; `nil` for other URLs.
    private static func tunnelled(_ url: String) -> Authority? {
        guard let url = try? WebURL(url, allowing: .fragment), url.scheme == .https else { return nil }
        return Authority(host: url.authority.host, port: url.port)
    }

    private mutating func explainTunnel(to authority: Authority) throws(Problem) -> RouteExplanation {
        do throws(Problem) {
            let destination = "\(authority.host):\(authority.port(for: .https))"
            return .tunnel(destination: try admitTunnel(to: destination).description)
        } catch {
            // The phrase is like the detail, but names the host.
            let asked = "For an https:// URL, programs send CONNECT \(authority)."
            return RouteExplanation(error, detail: "\(asked) \(error.phrase)\(error.phrase.hasSuffix("?") ? "" : ".")")
        }
    }

    private mutating func explain(
        _ text: String, inside: Inside? = nil, by listener: ListenerRole? = nil
    ) throws(Problem) -> RouteExplanation {
        let bytes = Array(text.utf8)
        let head = try parse(bytes)
        var situation = Gate.Situation(role: listener ?? role, inside: inside, isOperator: true)
        guard let choices = gate.choices(head, bytes.span), !choices.some.isEmpty else {
            return try ask(head, bytes, situation)
        }
        var some: [RouteExplanation] = []
        for choice in choices.some {
            situation.assumed = .upstream(choice)
            some.append(answer(head, bytes, situation))
        }
        situation.assumed = choices.others.map { .upstream($0) } ?? .notForCaller
        return .callers(some, others: answer(head, bytes, situation))
    }

    private mutating func answer(
        _ head: RequestHead, _ bytes: [UInt8], _ situation: Gate.Situation
    ) -> RouteExplanation {
        do throws(Problem) { return try ask(head, bytes, situation) } catch { return RouteExplanation(error) }
    }

    private mutating func ask(
        _ head: RequestHead, _ bytes: [UInt8], _ situation: Gate.Situation
    ) throws(Problem) -> RouteExplanation {
        var admitted = Admitted()
        guard case .forward = try gate.admit(head, bytes.span, situation, &admitted), let rule = admitted.rule,
            let destination = admitted.destination
        else { throw Problem(.internalError) }
        let address = "\(destination.scheme.rawValue)://\(destination.authority)"
        let https = treatment(ofTLSTo: bytes.span[head.asked(in: bytes.span).authority].text)
        guard let index = rule.index else {
            try judge(destination.authority)
            return .unmatched(destination: address, https: https)
        }
        let shown = rule.settings.url?.description ?? address
        return .upstream(
            UpstreamRoute(
                upstreams[index], index: index, destination: shown, isTrace: head.methodKind == .trace,
                way: admitted.named?.isBaseURL == true ? " by its own listener" : "", https: https))
    }

    /// Returns what a program gets that asks for this host by https, on its port or, instead of port 80, on 443.
    private mutating func treatment(ofTLSTo host: String) -> HTTPSTreatment {
        guard var authority = try? Authority(parsing: host) else { return .refused }
        if authority.port == 80 { authority.port = nil }
        switch try? admitConnect(to: "\(authority.host):\(authority.port(for: .https))") {
        case .connect(_, tls: .intercepted): return .intercepted
        case .connect(_, tls: .tunnelled), .tunnel: return .tunnelled
        case .connect(_, tls: .refused), .forward, .reply, nil: return .refused
        }
    }

    mutating func admitsTunnel(to authority: String) -> Bool { (try? admitTunnel(to: authority)) != nil }

    private mutating func admitTunnel(to authority: String) throws(Problem) -> Authority {
        switch try admitConnect(to: authority) {
        case .tunnel(let destination), .connect(let destination, tls: .tunnelled): return destination
        case .connect(let destination, tls: _): throw Problem(.connectRefused).connecting(to: destination)
        case .forward, .reply: throw Problem(.internalError)
        }
    }

    private mutating func admitConnect(to authority: String) throws(Problem) -> Admission {
        let bytes = Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n".utf8)
        var head = RequestHead()
        var admitted = Admitted()
        do throws(MessageError) {
            _ = try head.parse(bytes.span, limits: HeadLimits(maxBytes: 4096, maxFields: 1))
        } catch {
            throw Problem(error)
        }
        let situation = Gate.Situation(role: role, isOperator: true)
        return try gate.admit(head, bytes.span, situation, &admitted)
    }

    /// Applies the address policy to a numeric host. Looks up no name.
    private func judge(_ authority: Authority) throws(Problem) {
        guard let address = SocketAddress(numericHost: authority.host.bare, port: authority.port(for: .http)) else {
            return
        }
        var policy = AddressPolicy()
        policy.own = own
        policy.publicOnly = true
        policy.exceptions = settings.privateNetworks
        switch policy.judge(address) {
        case .allowed: return
        case .denied: throw Problem(.addressDenied)
        case .own: throw Problem(.loop)
        }
    }

    private func parse(_ bytes: [UInt8]) throws(Problem) -> RequestHead {
        var head = RequestHead()
        do throws(MessageError) {
            let limits = HeadLimits(maxBytes: settings.maxHeaderBytes, maxFields: 64)
            guard case .complete = try head.parse(bytes.span, limits: limits), head.methodKind != .connect,
                case .absolute = try RequestTarget(parsing: bytes.span, head: head)
            else { throw MessageError(detail: "Give a method and an absolute URL: GET http://HOST/PATH.") }
        } catch {
            throw Self.malformed(error)
        }
        return head
    }

    /// Returns the problem of a malformed request, with its detail as the only text.
    private static func malformed(_ error: MessageError) -> Problem {
        var problem = Problem(error)
        problem.detail = error.detail
        return problem
    }
}
