import Configuration
import HTTPMessage
import Reactor
import WireText

/// What a listener is for.
enum ListenerRole {
    /// `proxy.listen`: absolute-form, or origin-form routed by Host.
    case forward(ListenAddress)
    /// An upstream's own `listen`: every request is for it.
    case upstream(UpstreamListener)

    init(_ listener: ProxyPlan.Listener, _ configuration: Configuration) {
        if let index = listener.upstream {
            self = .upstream(
                UpstreamListener(configuration.upstreams[index], index: index, own: listener.bound))
        } else {
            self = .forward(listener.address.place)
        }
    }

    var baseURL: UpstreamListener? { if case .upstream(let listener) = self { listener } else { nil } }
}

/// The base-URL mode of one upstream. A token is put on whatever comes in here, so it refuses what a web page in the
/// user's browser could send, by DNS rebinding (a foreign Host) or plainly: Origin, Sec-Fetch-Site, or a browser's
/// User-Agent.
struct UpstreamListener: Sendable {
    let index: Int
    let rules: RouteTable.Rules
    /// The upstream's own authority, for one without `url`.
    let authority: Authority
    private let own: SocketAddress
    private let hosts: [Authority]
    private let admitsBrowsers: Bool

    init(_ settings: UpstreamSettings, index: Int, own: SocketAddress) {
        self.index = index
        self.own = own
        rules = RouteTable.rules(only: index, of: settings)
        authority = Authority(host: settings.host.host, port: settings.host.port)
        hosts = settings.hosts
        admitsBrowsers = settings.browsers
    }

    /// - Parameter asked: the authority that the request names, from its target or its Host field.
    /// - Returns: the same, read; `nil` where it names none.
    func admit(_ bytes: Span<UInt8>, _ head: RequestHead, _ asked: ByteRange) throws(Problem) -> Authority? {
        var authority: Authority?
        if !asked.isEmpty {
            let named: Authority
            do throws(MessageError) {
                named = try Authority(parsing: bytes, asked)
            } catch {
                throw Problem(error)
            }
            guard answers(to: named) else { throw .foreignHost }
            authority = named
        }
        if !admitsBrowsers { try WebPage.refuse(bytes, head) }
        return authority
    }

    /// Whether a connection to this authority would end here, as far as can be said without the machine's other
    /// addresses.
    func isAt(_ authority: Authority) -> Bool {
        guard authority.port(for: .http) == own.port else { return false }
        switch own.kind {
        case .unix: return false
        case .ipv4(0, _), .ipv6(0, 0, _, _): return authority.host.isLoopback
        case .ipv4(let address, _):
            if case .name = authority.host { return address >> 24 == 127 && authority.host.isLoopback }
            return authority.host == .ipv4(address)
        case .ipv6(let high, let low, _, _):
            if case .name = authority.host { return high == 0 && low == 1 && authority.host.isLoopback }
            return authority.host == .ipv6(high: high, low: low)
        }
    }

    private func answers(to authority: Authority) -> Bool {
        if authority.host.isLoopback || authority.host == .name("localhost") { return true }
        if isOwn(authority.host), authority.port(for: .http) == own.port { return true }
        return hosts.contains { $0.host == authority.host && ($0.port == nil || $0.port == authority.port(for: .http)) }
    }

    /// A listener on all addresses has each that leads to it. An address can't be bound anew by a page, as a name can.
    private func isOwn(_ host: Authority.Host) -> Bool {
        switch own.kind {
        case .ipv4(0, _), .ipv6(0, 0, _, _): if case .name = host { false } else { true }
        case .ipv4(let address, _): host == .ipv4(address)
        case .ipv6(let high, let low, _, _): host == .ipv6(high: high, low: low)
        case .unix: false
        }
    }
}

/// What a browser sends for a web page.
enum WebPage {
    /// - Throws: `Problem.webPage` when a page in a browser may have sent it.
    static func refuse(_ bytes: Span<UInt8>, _ head: RequestHead) throws(Problem) {
        for field in head.fields {
            switch field.known {
            // Sec-Fetch-Site has no good value: `none` is also what a browser says that followed a link in a mail to
            // a page which redirected it here (W3C Fetch Metadata, section 2.3).
            case .origin, .secFetchSite: throw .webPage
            // To names that are not loopback, browsers say neither over http, but pages can't hide who sends: without
            // asking first (and Origin is in the question), they can't set this field.
            case .userAgent where Self.isBrowser(bytes[field.value]): throw .webPage
            default: break
            }
        }
    }

    /// All engines of today say so, and programs that only pretend to be something old do not.
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
