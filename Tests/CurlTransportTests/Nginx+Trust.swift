import CurlTransport
import TestSupport

extension Nginx {
    /// Its TLS port.
    var origin: Origin { .secure(httpsPort) }

    /// Options that trust only its CA.
    var trust: @Sendable (inout PoolOptions) -> Void {
        let file = authority.certificateFile
        return { $0.trustAnchors = .only(file: file) }
    }
}
