import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Logging
import Proxy
import Reactor
import Reports

extension Traces {
    private static let connectTimeout = Duration.seconds(5)

    convenience init(secrets: SecretCache, tls: TLSFileCache, logger: Logger) {
        self.init(
            version: Version.number,
            connect: { settings, trustAnchors, loop in
                var options = PoolOptions()
                options.connectTimeout = Self.connectTimeout
                options.maxConnections = 1
                options.trustAnchors = PoolOptions.TrustAnchors(own: settings.tls.caFile, extra: trustAnchors)
                options.certificateFile = settings.tls.certFile
                options.keyFile = settings.tls.keyFile
                options.material = tls.material(settings.tls, extra: trustAnchors)
                return Collector(
                    endpoint: settings.endpoint, headers: settings.headers.map { ($0.name, secrets.secret($0.value)) },
                    client: CurlHTTPClient(BufferedClient(options: options, loop: loop)))
            },
            notify: { EventLog.write($0, to: logger) })
    }

    func tokenRequested(_ report: TokenRequestReport, _ notes: TokenRequestNotes) {
        let origin = notes.current.url.flatMap { CurlHTTPClient.split($0)?.0 }
        tokenRequested(report, at: origin, status: notes.status)
    }
}
