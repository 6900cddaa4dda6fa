import Configuration
import Reactor

extension ProxyServer {
    /// Descriptors for everything that is neither a client nor the upstream that serves it.
    private static let reserve = 64

    /// How many clients are served at once: `max_connections`, or what the limit of file descriptors allows, two for
    /// each. Past it clients wait; without a descriptor for the upstream they would fail.
    public static func clientLimit(_ settings: ProxySettings) -> Int {
        min(settings.maxConnections, max(1, (DescriptorLimit.current - reserve) / 2))
    }
}
