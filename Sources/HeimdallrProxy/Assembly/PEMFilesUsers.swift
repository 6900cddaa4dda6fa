import Configuration
import Cryptography
import CurlTransport
import Reactor
import Synchronization
import TLSServer
import WireText

/// TLS with a peer. Without good content, libcurl reads the files itself, and its message gives the reason.
extension TLSMaterial: PEMFilesUser {
    func prepare(_ pem: PEMGroup) throws -> @Sendable () -> Void {
        if let anchors = pem.anchors, let file = files.anchors, let fault = TLSFileCheck.fault(anchors: anchors) {
            throw UnusableFile(file, fault)
        }
        if let certificate = pem.certificate, let key = pem.key, let file = files.certificate,
            let fault = TLSFileCheck.fault(certificate: certificate, key: key)
        {
            throw UnusableFile(file, fault)
        }
        let parts = try pem.parts.map { try $0?.withSpan { try MemoryFile($0) } }
        let id = try pem.certificate?.withSpan { try Fingerprint($0) }.number ?? 0
        return { [self] in replace(certificate: parts[0], key: parts[1], anchors: parts[2], certificateID: id) }
    }

    func forgotten() {}
}

/// A certificate of the operator for programs: of a listener, or of an intercepted upstream. Any thread.
final class ListenerCertificate: PEMFilesUser {
    private let current = Mutex<TLSServerContext?>(nil)

    init(_: TLSMaterial.Files) {}

    /// `nil` before the first good content.
    var context: TLSServerContext? { current.withLock { $0 } }

    /// Returns the fault of a listener's files; `nil` if there is none. Blocks.
    static func fault(of tls: ListenerTLS) -> ConfigurationError.Problem? {
        let files = TLSMaterial.Files(tls)
        do { _ = try ListenerCertificate(files).prepare(PEMGroup(files)) } catch {
            return UnusableFile(error, of: files).problem
        }
        return nil
    }

    func prepare(_ pem: PEMGroup) throws -> @Sendable () -> Void {
        let chain = try Self.certificates(pem.certificate, pem.files.certificate)
        let key = try UnusableFile.with(pem.files.key) { try SigningKey(text: pem.key ?? SecretBytes([])) }
        let clients = try pem.anchors.map { anchors in
            let all = try Self.certificates(anchors, pem.files.anchors)
            // Connections stay if the authorities for client certificates are unchanged.
            if let former = context?.clients, former.anchors == all { return former }
            return ClientVerification(anchors: all, isRequired: true)
        }
        let next = try TLSServerContext(
            certificates: chain, key: key, session: Array("certificate \(pem.files.certificate ?? "")".utf8),
            clients: clients)
        return { [self] in
            current.withLock { current in
                if current?.clients !== next.clients { current?.clients?.withdraw() }
                current = next
            }
        }
    }

    func forgotten() { context?.clients?.withdraw() }

    /// Returns the certificates of a PEM file as DER.
    private static func certificates(_ pem: SecretBytes?, _ path: String?) throws -> [[UInt8]] {
        try UnusableFile.with(path) {
            try X509Certificate.all(pem: pem?.withSpan { [UInt8](copying: $0) } ?? []).map { try $0.der() }
        }
    }
}

extension UnusableFile {
    var problem: ConfigurationError.Problem {
        var problem = ConfigurationError.Problem(
            file: file, message: "this file can't be used for TLS with programs: \(reason)")
        problem.mayPass = AwaitedFile.isAwaited(file)
        return problem
    }
}

extension TLSMaterial.Files {
    init(_ tls: TLSSettings, extra: String?) {
        self.init(certificate: tls.certFile, key: tls.keyFile, anchors: tls.caFile ?? extra)
    }

    init(_ tls: ListenerTLS) { self.init(certificate: tls.certFile, key: tls.keyFile, anchors: tls.clientCAFile) }
}

extension Configuration {
    /// Files for TLS with upstreams, authorization servers and the collector.
    var peerFiles: Set<TLSMaterial.Files> {
        let all = clients.map(\.tls) + upstreams.map(\.tls) + [TLSSettings()] + [tracing?.tls].compactMap(\.self)
        // A signing key's certificate is sent only as a digest, but its expiry matters, too.
        let named = clients.compactMap { $0.clientCertificate.map { TLSMaterial.Files(certificate: $0) } }
        return Set(all.map { TLSMaterial.Files($0, extra: trustAnchorsFile) }.filter { !$0.all.isEmpty } + named)
    }

    /// Files for TLS with programs.
    var listenerFiles: Set<TLSMaterial.Files> { Set(allServerTLS.map { TLSMaterial.Files($0) }) }
}
