import Configuration
import Reactor

extension ProxyServer {
    /// Descriptors for all but clients and upstream connections.
    private static let reserve = 64

    /// Limit of concurrent clients: `max_connections`, or half the available descriptors. Further clients wait, because
    /// their requests would lack a descriptor for the upstream.
    public static func clientLimit(_ settings: ProxySettings) -> Int {
        min(settings.maxConnections, max(1, (DescriptorLimit.current - reserve) / 2))
    }
}
