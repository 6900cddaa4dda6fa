import Configuration
import HTTPMessage

/// Where CONNECT may lead.
struct TunnelRules: Sendable {
    private let listed: Set<Authority>
    let admitsAny: Bool

    /// - Returns: `nil` with `connect: reject`.
    init?(_ settings: ProxySettings) {
        guard settings.connect == .tunnel else { return nil }
        var listed: Set<Authority> = []
        for case .place(let authority) in settings.tunnels { listed.insert(authority) }
        self.listed = listed
        admitsAny = settings.tunnels.contains(.any)
    }

    func isListed(_ authority: Authority) -> Bool { listed.contains(authority) }

    /// - Parameter rules: `nil`: CONNECT is refused.
    /// - Returns: the target, which has a port.
    static func admit(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ role: ListenerRole, by rules: TunnelRules?
    ) throws(Problem) -> Authority {
        let authority: Authority
        do throws(MessageError) {
            _ = try RequestTarget(parsing: bytes, head: head)
            authority = try Authority(parsing: bytes, head.target)
        } catch {
            throw Problem(error)
        }
        guard case .forward = role, let rules else { throw .connectRefused }
        guard rules.admitsAny || rules.isListed(authority), authority.port != nil else { throw .tunnelNotListed }
        return authority
    }
}
