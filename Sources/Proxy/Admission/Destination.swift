import CurlTransport
import HTTPMessage

/// Where a request goes: what is dialled, and what the Host field says. One object for all requests of a `url`.
final class Destination: Sendable {
    let origin: Origin
    let host: [UInt8]
    let scheme: Scheme
    let authority: Authority

    /// - Parameter serverName: for SNI and the certificate, where it is not the host.
    init(scheme: Scheme, authority: Authority, serverName: String?) {
        self.scheme = scheme
        self.authority = authority
        origin = Origin(
            scheme: scheme == .https ? .https : .http, host: authority.host.description,
            port: authority.port(for: scheme), serverName: serverName)
        host = Array(origin.authority.utf8)
    }
}
