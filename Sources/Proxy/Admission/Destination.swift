import CurlTransport
import HTTPMessage

/// Address to dial and Host field of a request. All requests to the same `url` share one object.
final class Destination: Sendable {
    let origin: Origin
    /// Value of the Host field.
    let host: [UInt8]
    let scheme: Scheme
    let authority: Authority

    /// - Parameter serverName: name for SNI and the certificate check, if it differs from the host.
    init(scheme: Scheme, authority: Authority, serverName: String?) {
        self.scheme = scheme
        self.authority = authority
        origin = Origin(scheme, authority, serverName: serverName)
        host = Array(origin.authority.utf8)
    }
}
