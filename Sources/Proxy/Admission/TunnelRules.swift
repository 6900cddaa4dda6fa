import Configuration
import HTTPMessage

struct TunnelRules: Sendable {
    private let listed: Set<Authority>
    let admitsAny: Bool

    /// - Returns: `nil` with `connect: reject`.
    init?(_ settings: ProxySettings) {
        guard settings.connect == .tunnel else { return nil }
        var listed: Set<Authority> = []
        for case .authority(let authority) in settings.tunnels { listed.insert(authority) }
        self.listed = listed
        admitsAny = settings.tunnels.contains(.any)
    }

    func isListed(_ authority: Authority) -> Bool { listed.contains(authority) }

    /// - Parameters:
    ///   - rules: `nil`: CONNECT is refused.
    ///   - routes: show whether the same host, or a similar one, is signed over http.
    ///   - caller: no host is suggested that this caller can't use; `nil`: for the operator.
    /// - Returns: the target, which has a port.
    static func admit(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ role: ListenerRole, by rules: TunnelRules?,
        _ routes: RouteTable, _ caller: Caller?
    ) throws(Problem) -> Authority {
        let authority: Authority
        do throws(MessageError) {
            _ = try RequestTarget(parsing: bytes, head: head)
            authority = try Authority(parsing: bytes, head.target)
        } catch {
            throw Problem(error)
        }
        guard case .forward = role else { throw .connectRefused }
        if let rules, rules.admitsAny || rules.isListed(authority), authority.port != nil { return authority }
        let problem = rules == nil ? Problem.connectRefused : .tunnelNotListed
        guard routes.rules(for: authority.byHTTP, scheme: .http) == nil else {
            throw problem.connecting(to: authority)
        }
        throw problem.connecting(to: authority, near: routes.near.nearest(to: authority.byHTTP, caller: caller))
    }
}
