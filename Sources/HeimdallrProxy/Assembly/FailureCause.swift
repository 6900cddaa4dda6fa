import CurlTransport
import Proxy
import Synchronization
import WireText

/// Printable cause of a failed exchange: the event, and libcurl's own message.
enum FailureCause {
    /// libcurl's words can hold what the other side sent, such as a certificate's name.
    static func text(_ error: TransportError) -> String {
        ForeignText.printable("\(words(error.kind)): \(error.message)")
    }

    private static func words(_ kind: TransportError.Kind) -> String {
        switch kind {
        case .nameNotResolved: "the name can't be resolved"
        case .connectionRefused: "connection refused"
        case .connectionFailed: "no connection"
        case .connectionTimedOut, .withheld: "no connection in time"
        case .connectionLimit: "too many requests at once"
        case .addressDenied: "the address is not allowed"
        case .loop: "the address is this proxy's own"
        case .tlsHandshake: "the TLS handshake failed"
        case .tlsCertificate: "the certificate is not trusted"
        case .tlsConfiguration: "a file for TLS can't be used"
        case .proxy: "the next proxy refused"
        case .connectionLost: "the connection was closed before an answer"
        case .responseTruncated: "the answer was cut"
        case .responseMalformed: "the answer is not HTTP"
        case .aborted, .http2Missing, .internal: "the exchange failed"
        }
    }
}

/// The last failure of each upstream, by name. Any thread.
final class UpstreamFailures: Sendable {
    private let last = Mutex<[String: (cause: String, at: ContinuousClock.Instant)]>([:])

    func note(_ failure: UpstreamFailure) {
        let cause = FailureCause.text(failure.error)
        last.withLock { $0[failure.upstream] = (cause, .now) }
    }

    func current(_ upstream: String) -> (cause: String, ago: Duration)? {
        last.withLock { $0[upstream] }.map { ($0.cause, $0.at.duration(to: .now)) }
    }
}
