import CurlTransport
import TestSupport

extension Nginx {
    /// Its TLS port.
    var origin: Origin { .secure(httpsPort) }

    /// Options that trust its CA and nobody else.
    var trust: @Sendable (inout PoolOptions) -> Void {
        let file = authority.certificateFile
        return { $0.trustAnchors = .only(file: file) }
    }
}
