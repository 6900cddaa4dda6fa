import Configuration
import HTTPMessage
import Reactor
import WireText

enum ListenerRole {
    /// `proxy.listen`: a request's target or Host field names its upstream.
    case forward(ListenAddress)
    /// `listen` of an upstream: all requests are for this upstream.
    indirect case upstream(UpstreamListener)

    init(_ listener: ProxyPlan.Listener, _ configuration: Configuration) {
        self =
            listener.upstream.map { index in
                .upstream(UpstreamListener(configuration.upstreams[index], index: index, own: listener.bound))
            } ?? .forward(listener.address.endpoint)
    }

    var upstreamListener: UpstreamListener? { if case .upstream(let listener) = self { listener } else { nil } }
}

/// A listener for one upstream only. Its requests get a token, so it refuses requests that a web page may have caused.
/// Signs: a foreign Host (DNS rebinding); unless `browsers` is set, also Origin, Sec-Fetch-Site or a browser's User-Agent.
struct UpstreamListener: Sendable {
    let candidates: RouteTable.Candidates
    /// Authority of the upstream's `host`. Requests go there if the upstream has no `url`.
    let authority: Authority
    let scheme: Scheme
    private let port: UInt16
    /// Address of the listener; `nil` for a Unix socket.
    private let host: Authority.Host?
    /// Whether the listener is bound to all addresses of the machine.
    private let isOnAll: Bool
    private let hosts: [Authority]
    private let admitsBrowsers: Bool

    init(_ settings: UpstreamSettings, index: Int, own: SocketAddress) {
        port = own.port
        host =
            switch own.kind {
            case .unix: nil
            case .ipv4(let address, _): .ipv4(address)
            case .ipv6(let high, let low, _, _): .ipv6(high: high, low: low)
            }
        isOnAll = host == .ipv4(0) || host == .ipv6(high: 0, low: 0)
        candidates = RouteTable.candidates(only: index, of: settings)
        authority = Authority(host: settings.host.host, port: settings.host.port)
        scheme = settings.listenerTLS == nil ? .http : .https
        hosts = settings.hosts
        admitsBrowsers = settings.browsers
    }

    /// - Parameter asked: authority of the request's target or Host field.
    /// - Returns: the parsed authority; `nil` when the request names none.
    func admit(_ bytes: Span<UInt8>, _ head: RequestHead, _ asked: ByteRange) throws(Problem) -> Authority? {
        var authority: Authority?
        if !asked.isEmpty {
            let named: Authority
            do throws(MessageError) {
                named = try Authority(parsing: bytes, asked)
            } catch {
                throw Problem(error)
            }
            guard answers(to: named) else { throw Problem(.foreignHost) }
            authority = named
        }
        if !admitsBrowsers { try WebPage.refuse(bytes, head) }
        return authority
    }

    /// Whether a connection to this authority would reach this listener. Looks up no name.
    func isAt(_ authority: Authority, _ scheme: Scheme) -> Bool {
        guard scheme == self.scheme, authority.port(for: scheme) == port, let host else { return false }
        if isOnAll || host.isLoopback && !authority.host.isAddress { return authority.host.isLoopback }
        return authority.host == host
    }

    private func answers(to authority: Authority) -> Bool {
        if authority.host.isLoopback { return true }
        let asked = authority.port(for: scheme)
        // DNS rebinding needs a name, so a Host that is an address of this listener is safe.
        if isOnAll ? authority.host.isAddress : authority.host == host, asked == port { return true }
        return hosts.contains { $0.host == authority.host && ($0.port == nil || $0.port == asked) }
    }
}

/// Recognizes requests that a web page may have caused.
enum WebPage {
    /// - Throws: `Problem.webPage` for a request that a web page may have caused.
    static func refuse(_ bytes: Span<UInt8>, _ head: RequestHead) throws(Problem) {
        for field in head.fields {
            switch field.known {
            // Sec-Fetch-Site has no safe value. A link in a mail can lead to a page that redirects here, and browsers
            // then send `none` (W3C Fetch Metadata, section 2.3).
            case .origin, .secFetchSite: throw Problem(.webPage)
            // Over http, except to loopback, browsers may omit both fields, but they send User-Agent. A page can change
            // User-Agent only after a preflight request, which has Origin.
            case .userAgent where Self.isBrowser(bytes[field.value]): throw Problem(.webPage)
            default: break
            }
        }
    }

    /// Whether this User-Agent contains `gecko`, as those of all current browser engines do.
    private static func isBrowser(_ agent: Span<UInt8>) -> Bool {
        guard agent.count >= gecko.count else { return false }
        for start in 0...(agent.count - gecko.count)
        where agent.extracting(start..<(start + gecko.count)).equalsIgnoringCase(gecko) {
            return true
        }
        return false
    }

    private static let gecko = Array("gecko".utf8)
}
