import Configuration
import CurlTransport
import HTTPMessage
import Reactor

/// The targets that CONNECT may reach, and one loop's dialers for them. Loop's thread only.
final class Tunnels {
    private let rules: TunnelRules
    private let listedDialer: Dialer
    /// Dialer for `tunnels: ["*"]`, to public addresses only (rule 9).
    private let anyDialer: Dialer?

    /// - Returns: `nil` with `connect: reject`.
    init?(_ settings: ProxySettings, own: OwnListeners, loop: EventLoop) {
        guard let rules = TunnelRules(settings) else { return nil }
        self.rules = rules
        var options = PoolOptions()
        options.addressPolicy.own = own
        listedDialer = Dialer(options: options, loop: loop)
        guard rules.admitsAny else {
            anyDialer = nil
            return
        }
        options.addressPolicy.publicOnly = true
        options.addressPolicy.exceptions = settings.privateNetworks
        anyDialer = Dialer(options: options, loop: loop)
    }

    /// Returns the dialer and the address to dial for an admitted target; `nil` if the address is unknown.
    /// - Parameter redirected: `nil` for a CONNECT. If a redirected connection names an unlisted authority, the address
    ///   that the program dialled is dialled instead.
    func target(
        for authority: Authority, _ redirected: Redirected?
    ) -> (dialer: Dialer, host: String, port: UInt16)? {
        guard let port = authority.port else { return nil }
        if rules.isListed(authority) { return (listedDialer, authority.host.description, port) }
        guard let anyDialer else { return nil }
        guard let redirected else { return (anyDialer, authority.host.description, port) }
        guard let destination = redirected.destination, let address = NumericAddress(destination) else { return nil }
        return (anyDialer, address.description, destination.port)
    }
}
