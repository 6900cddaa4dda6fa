import Configuration
import HTTPMessage

/// The targets of tunnels (`proxy.tunnels`), and the admission of CONNECT.
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
    ///   - rules: `nil` if tunnels are off.
    ///   - routes: show whether the host or a similar host is one of `upstreams`.
    ///   - caller: caller that must be allowed to use a suggested host; `nil` for the operator, who sees all hosts.
    static func admit(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Gate.Situation, by rules: TunnelRules?,
        _ routes: RouteTable, _ caller: Caller?
    ) throws(Problem) -> Admission {
        let authority: Authority
        do throws(MessageError) {
            _ = try RequestTarget(parsing: bytes, head: head)
            authority = try Authority(parsing: bytes, head.target)
        } catch {
            throw Problem(error)
        }
        guard case .forward = situation.role, situation.inside == nil, let port = authority.port else {
            throw Problem(.connectRefused)
        }
        let isTunnelled = rules.map { $0.admitsAny || $0.isListed(authority) } ?? false
        // If TLS would be refused, CONNECT to port 443 gets a 403: after a 200, the proxy could not tell the reason.
        if let listed = routes.candidates(for: authority, scheme: .http) {
            let tls: TLSInside = listed.intercepts ? .intercepted : isTunnelled ? .tunnelled : .refused
            if tls != .refused || port != 443 { return .connect(authority, tls: tls) }
        }
        if let rules, rules.isListed(authority) { return .tunnel(authority) }
        // A program that resolves names itself sends an address. After a 200, its requests or its TLS name the host.
        if authority.host.isAddress {
            if routes.interceptedPorts.contains(port) { return .connect(authority, tls: .intercepted) }
            if !isTunnelled, port != 443, routes.ports.contains(port) { return .connect(authority, tls: .refused) }
        }
        if isTunnelled { return .tunnel(authority) }
        let problem = rules == nil ? Problem(.connectRefused) : Problem(.tunnelNotListed)
        guard routes.candidates(for: authority.byHTTP, scheme: .http) == nil else {
            throw problem.connecting(to: authority)
        }
        throw problem.connecting(to: authority, near: routes.near.nearest(to: authority.byHTTP, caller: caller))
    }
}
