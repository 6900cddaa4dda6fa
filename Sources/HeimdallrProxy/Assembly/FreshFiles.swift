import Configuration
import CurlTransport
import Heimdallr
import Logging
import Reactor
import Reports
import Synchronization

/// Watches the configured files that are reloaded when they change: secrets, keys, certificates, trust anchors.
final class FreshFiles: Sendable {
    let secrets: SecretCache
    let tls: PEMFiles<TLSMaterial>
    let listeners: PEMFiles<ListenerCertificate>
    private let watch = Mutex<FileWatch?>(nil)
    private let logger: Logger

    init(secrets: SecretCache, tls: PEMFiles<TLSMaterial>, listeners: PEMFiles<ListenerCertificate>, logger: Logger) {
        self.secrets = secrets
        self.tls = tls
        self.listeners = listeners
        self.logger = logger
    }

    func update() {
        let files = tls.paths.union(secrets.files).union(listeners.paths)
        watch.withLock { watch in
            if watch == nil, !files.isEmpty { watch = start() }
            watch?.watch(files)
        }
    }

    /// Files whose newer content can't be used, and secrets whose last value stays in use, each with the reason. Blocks.
    var unused: [String] {
        let system = SystemAuthorities.shared
        let bundle = system.isBehind ? system.bundle.map { "\($0): it can't be used" } : nil
        let unused = tls.unused.union(listeners.unused).map { "\($0.file): \($0.reason)" }
        let kept = secrets.all.compactMap { source, secret in
            secret.fault.flatMap { secret.current() == nil ? nil : "\(source): \($0)" }
        }
        return (unused + [bundle].compactMap(\.self) + kept).sorted()
    }

    func certificateEnds(at now: Int64) -> [CertificateEnd] {
        tls.certificateEnds(at: now) + listeners.certificateEnds(at: now)
    }

    func end() { watch.withLock { $0 = nil } }

    private func start() -> FileWatch? {
        do throws(SystemError) {
            return try FileWatch { [secrets, tls, listeners] paths in
                tls.readAgain(paths)
                listeners.readAgain(paths)
                secrets.readAgain(paths)
            }
        } catch {
            logger.warning("changes of files are not noticed", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}
