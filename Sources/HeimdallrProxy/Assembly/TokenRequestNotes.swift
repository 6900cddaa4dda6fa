import Configuration
import Cryptography
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Logging
import Proxy
import Reactor
import Reports
import Synchronization
import WireText

/// The URL and the failure of a client's last token request, for the log, `status` and the page. Kept until the next
/// request has ended. Any thread.
final class TokenRequestNotes: Sendable {
    private let state = Mutex((ended: LastTokenRequest(), cause: String?.none, status: Int?.none))
    var current: LastTokenRequest { state.withLock { $0.ended } }

    /// The last request, unless it does not belong to this error, because nothing was sent.
    func last(of error: HeimdallrError?) -> LastTokenRequest {
        error?.wasNotSent == true ? LastTokenRequest() : current
    }

    /// Status of the answer to the last request.
    var status: Int? { state.withLock { $0.status } }

    fileprivate func ended(_ url: String, status: Int?) {
        let withAnswer = status != nil
        state.withLock {
            $0.status = status
            $0.ended = LastTokenRequest(
                url: String(url.prefix { $0 != "?" && $0 != "#" }), cause: withAnswer ? nil : $0.cause)
            $0.cause = nil
        }
    }

    /// Notes the cause of a failure. Called before `ended`.
    func failed(_ error: TransportError) { state.withLock { $0.cause = FailureCause.text(error) } }
}

struct NotingHTTPClient: HeimdallrHTTPClient {
    let client: any HeimdallrHTTPClient
    let last: TokenRequestNotes
    /// Receives a copy of the answers.
    var tap: Tap?

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let before = WallClock.now()
        do {
            let response = try await client.send(request)
            tap?.note(request, response, at: (before + WallClock.now()) / 2)
            last.ended(request.url, status: response.status)
            return response
        } catch {
            last.ended(request.url, status: nil)
            throw error
        }
    }
}

/// Printable cause of a failed exchange: the event, and libcurl's own message.
enum FailureCause {
    /// Makes the text printable, because libcurl's message can contain text of the other side.
    static func text(_ error: TransportError) -> String {
        let words = error.nextProxyStatus == 407 ? "the next proxy requires a login" : words(error.kind)
        return ForeignText.printable("\(words): \(error.message)")
    }

    /// Our words for a kind of failure.
    static func words(_ kind: TransportError.Kind) -> String {
        switch kind {
        case .nameNotResolved: "the name can't be resolved"
        case .nameTimedOut: "the name server does not answer"
        case .connectionRefused: "connection refused"
        case .connectionFailed: "no connection"
        case .shortage(let shortage): shortage.fault
        case .connectionTimedOut, .withheld: "no connection in time"
        case .connectionLimit: "too many requests at once"
        case .addressDenied: "the address is not allowed"
        case .loop: "the address is this proxy's own"
        case .tlsHandshake: "the TLS handshake failed"
        case .tlsCertificate: "the certificate is not trusted"
        case .tlsConfiguration: "a file for TLS can't be used"
        case .proxy: "the next proxy refused, or its name can't be resolved"
        case .connectionLost: "the connection was closed before an answer"
        case .responseTruncated: "the answer was cut"
        case .responseMalformed: "the answer is not HTTP"
        case .http2Only: "the server speaks HTTP/2 only"
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

extension Traces {
    private static let connectTimeout = Duration.seconds(5)

    convenience init(secrets: SecretCache, tls: PEMFiles<TLSMaterial>, logger: Logger) {
        self.init(
            version: Product.version,
            connect: { settings, trustAnchors, loop in
                let options = PoolOptions(
                    connectTimeout: Self.connectTimeout, maxConnections: 1, settings.tls, anchors: trustAnchors,
                    tls[.init(settings.tls, extra: trustAnchors)])
                return Collector(
                    endpoint: settings.endpoint, headers: settings.headers.map { ($0.name, secrets.secret($0.value)) },
                    client: CurlHTTPClient(BufferedClient(options: options, loop: loop)))
            },
            notify: { EventLog.write($0, to: logger) })
    }

    func tokenRequested(_ report: TokenRequestReport, _ notes: TokenRequestNotes) {
        let origin = notes.current.url.flatMap { Origin(url: $0) }
        tokenRequested(report, at: origin, status: notes.status)
    }
}
