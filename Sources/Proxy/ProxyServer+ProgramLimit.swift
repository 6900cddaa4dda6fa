import Configuration
import Reactor

extension ProxyServer {
    /// Descriptors kept for other purposes than connections of programs and upstreams.
    private static let reserve = 64

    /// Returns the limit of concurrent programs: `max_connections`, but at most half the available descriptors. The
    /// other half is for connections to upstreams.
    public static func programLimit(_ settings: ProxySettings) -> Int {
        min(settings.maxConnections, max(1, (DescriptorLimit.current - reserve) / 2))
    }
}
