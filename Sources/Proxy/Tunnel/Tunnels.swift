import Configuration
import CurlTransport
import HTTPMessage
import Reactor

/// The targets that CONNECT may reach, and one loop's dialers for them. Loop's thread only.
final class Tunnels {
    /// Name in logs and metrics. No host has this form.
    static let name = "(tunnels)"

    private let rules: TunnelRules
    private let listedDialer: Dialer
    /// For `tunnels: ["*"]`: public addresses only (rule 9).
    private let anyDialer: Dialer?

    /// - Returns: `nil` with `connect: reject`.
    /// - Throws: `TransportError` when libcurl lacks memory.
    init?(_ settings: ProxySettings, own: OwnListeners, loop: EventLoop) throws(TransportError) {
        guard let rules = TunnelRules(settings) else { return nil }
        self.rules = rules
        var options = PoolOptions()
        options.addressPolicy.own = own
        listedDialer = try Dialer(options: options, loop: loop)
        guard rules.admitsAny else {
            anyDialer = nil
            return
        }
        options.addressPolicy.publicOnly = true
        options.addressPolicy.exceptions = settings.privateNetworks.map { AddressPolicy.Block($0) }
        anyDialer = try Dialer(options: options, loop: loop)
    }

    /// - Parameter authority: an admitted one.
    func dialer(for authority: Authority) -> Dialer? { rules.isListed(authority) ? listedDialer : anyDialer }
}
