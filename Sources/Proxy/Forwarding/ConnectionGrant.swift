import Configuration
import Cryptography
import HTTPMessage
import HTTPServer
import TLSServer

/// The grant of a program's connection from its beginning: the listener's TLS, the program's certificate, the
/// interception of a host. All requests of the connection share it, in any version of HTTP, and each looks at it again:
/// a reload, the authorities' file or the time may have ended it. Loop's thread only.
///
/// The user, the upstreams and the rules for callers are no part of it, because each request is judged by the current
/// ones.
final class ConnectionGrant {
    enum Standing {
        case good
        /// A reload ended the interception of the host. A request of HTTP/1.1 gets a last answer.
        case ending
        /// No further request is served.
        case over
    }

    /// TLS settings with which the listener accepted the connection; `nil` for plain HTTP.
    let tls: ListenerTLS?
    /// The program's certificate, from the first request on; `nil` if the listener verifies none.
    private(set) var certificate: ClientCertificate?
    private unowned let connection: ServerConnection
    private let ends: CertificateEnds
    private unowned let shard: ProxyShard
    private var verification: ClientVerification?
    private var standing = Standing.good
    /// Generation of the rules under which `standing` was decided; `nil` before the first request.
    private var generation: Int?

    init(_ connection: ServerConnection, _ shard: ProxyShard) {
        self.connection = connection
        self.shard = shard
        ends = shard.listenerTLS.certificateEnds
        tls = shard.listener(connection.source.listener, under: shard.installed)?.tls
    }

    deinit { if certificate != nil { ends.remove(self) } }

    /// - Parameter inside: the CONNECT inside which the request came.
    func standing(under installed: InstalledPlan, inside: Inside?) -> Standing {
        if generation != installed.plan.generation {
            if generation == nil, tls?.clientCAFile != nil { takeCertificate() }
            generation = installed.plan.generation
            if standing != .over { standing = judge(installed, inside) }
        }
        if let certificate, certificate.end < WallClock.now() || verification?.isWithdrawn ?? true { standing = .over }
        return standing
    }

    /// Reads the program's certificate. A request has come, so the TLS handshake is complete.
    private func takeCertificate() {
        guard let stream = connection.source.stream as? TLSServerStream, let shown = stream.clientCertificate else {
            standing = .over
            return
        }
        (certificate, verification) = (shown, stream.clientVerification)
        ends.insert(connection, of: self, at: shown.end)
    }

    private func judge(_ installed: InstalledPlan, _ inside: Inside?) -> Standing {
        guard let listener = shard.listener(connection.source.listener, under: installed), listener.tls == tls else {
            return .over
        }
        guard let inside else { return .good }
        // A CONNECT was for the hosts of all upstreams. Now the listener is one upstream's own.
        guard case .forward = listener.role else { return .over }
        guard inside.scheme == .https else { return .good }
        let routes = installed.intercepted(inside.authority)
        return routes != nil && routes?.serverCertificate == inside.certificate ? .good : .ending
    }
}
