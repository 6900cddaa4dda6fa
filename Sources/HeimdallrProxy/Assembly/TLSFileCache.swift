import Administration
import Configuration
import Cryptography
import CurlTransport
import Logging
import Reactor
import Reports
import Synchronization

/// The last good content of the configuration's PEM files. All peers with the same group of files share one object. Any
/// thread; reading blocks.
final class TLSFileCache: Sendable {
    private let counts: ReloadCounts
    private let logger: Logger?
    private let onChange: @Sendable (TLSMaterial.Files) -> Void
    private let materials = Mutex<[TLSMaterial.Files: TLSMaterial]>([:])
    /// Faults by file.
    private let faults = Mutex<[String: String]>([:])
    /// Last good certificate and trust anchors of each group of files.
    private let last = Mutex<[TLSMaterial.Files: FileContents]>([:])

    /// End times of certificates by file.
    private let ends = Mutex<[CertificateFile: [Int64]]>([:])

    private struct CertificateFile: Hashable {
        let kind: CertificateEnd.Kind
        let path: String
    }

    /// - Parameter onChange: called after files that were used have other content.
    init(counts: ReloadCounts, logger: Logger?, onChange: @escaping @Sendable (TLSMaterial.Files) -> Void = { _ in }) {
        self.counts = counts
        self.logger = logger
        self.onChange = onChange
    }

    /// Reads the files that were not read yet. Called before `material` is used for a configuration.
    func add(_ configuration: Configuration) async {
        let wanted = Self.files(of: configuration)
        await BlockingWork.run { [self] in
            var reading = Reading()
            for files in wanted where materials.withLock({ $0[files] == nil }) {
                let material = TLSMaterial(files)
                for path in files.all { counts.expect(.file(path)) }
                read(material, isFirst: true, &reading)
                materials.withLock { $0[files] = material }
            }
            reading.replaceAll()
        }
    }

    /// Forgets the files that this configuration does not use.
    func keep(_ configuration: Configuration) {
        let wanted = Self.files(of: configuration)
        materials.withLock { materials in materials = materials.filter { wanted.contains($0.key) } }
        last.withLock { last in last = last.filter { wanted.contains($0.key) } }
        let named = Set(wanted.flatMap(\.all))
        ends.withLock { ends in ends = ends.filter { named.contains($0.key.path) } }
    }

    func material(_ tls: TLSSettings, extra: String?) -> TLSMaterial? {
        materials.withLock { $0[TLSMaterial.Files(tls, extra: extra)] }
    }

    /// Returns the first expiry in each file's last good content. For trust anchors it is the next expiry, because some
    /// anchors may have expired without consequences.
    func certificateEnds(at now: Int64) -> [CertificateEnd] {
        ends.withLock { $0 }.compactMap { file, ends in
            let first = file.kind == .trustAnchors ? ends.filter { $0 > now }.min() ?? ends.max() : ends.min()
            return first.map { CertificateEnd(file.kind, file.path, at: $0) }
        }.sorted { ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name) }
    }

    /// Files that can't be used now, each with the reason.
    var unused: [String] { faults.withLock { $0.map { "\($0.key): \($0.value)" } } }

    var files: Set<String> { Set(materials.withLock { $0.keys.flatMap(\.all) }) }

    /// Reads each group of files with one of these paths again. After a fault, the last good content stays in use.
    func readAgain(_ paths: Set<String>) {
        let touched = materials.withLock { $0.values.filter { !paths.isDisjoint(with: $0.files.all) } }
        var reading = Reading()
        for material in touched { read(material, isFirst: false, &reading) }
        reading.replaceAll()
    }

    private static func files(of configuration: Configuration) -> Set<TLSMaterial.Files> {
        let extra = configuration.trustAnchorsFile
        let all =
            configuration.clients.map(\.tls) + configuration.upstreams.map(\.tls) + [TLSSettings()]
            + [configuration.tracing?.tls].compactMap(\.self)
        // A signing key's certificate is sent only as a digest, but its expiry matters, too.
        let named = configuration.clients.compactMap { client in
            client.clientCertificate.map { TLSMaterial.Files(certificate: $0) }
        }
        return Set(all.map { TLSMaterial.Files($0, extra: extra) }.filter { !$0.all.isEmpty } + named)
    }

    /// Files that are read once and together, so that all peers with the same files get the same content.
    private struct Reading {
        private var files: [String: Result<SecretBytes, UnusableFile>] = [:]
        /// Performed together, because a token may be requested with one of the materials and sent with another.
        var replacements: [() -> Void] = []

        func replaceAll() { for replace in replacements { replace() } }

        mutating func bytes(_ path: String?) throws(UnusableFile) -> SecretBytes? {
            guard let path else { return nil }
            let result = files[path] ?? Result { () throws(UnusableFile) in try UnusableFile.read(path) }
            files[path] = result
            return try result.get()
        }
    }

    private func read(_ material: TLSMaterial, isFirst: Bool, _ reading: inout Reading) {
        let files = material.files
        do throws(UnusableFile) {
            let certificate = try reading.bytes(files.certificate)
            let key = try reading.bytes(files.key)
            let anchors = try reading.bytes(files.anchors)
            if let anchors, let file = files.anchors, let fault = TLSFileCheck.fault(anchors: anchors) {
                throw UnusableFile(file: file, reason: fault)
            }
            if let certificate, let key, let file = files.certificate,
                let fault = TLSFileCheck.fault(certificate: certificate, key: key)
            {
                throw UnusableFile(file: file, reason: fault)
            }
            // The key is not compared, because another key needs another certificate.
            let next = FileContents([certificate, anchors])
            note(certificate, .clientCertificate, files.certificate)
            note(anchors, .trustAnchors, files.anchors)
            guard last.withLock({ $0[files] }) != next else { return recovered(files) }
            let replace = try Self.replacement(of: material, by: [certificate, key, anchors])
            reading.replacements.append { [self] in
                replace()
                if !isFirst { replaced(files) }
            }
            last.withLock { $0[files] = next }
            faults.withLock { faults in for file in files.all { faults[file] = nil } }
        } catch {
            guard faults.withLock({ $0.updateValue(error.reason, forKey: error.file) }) != error.reason else { return }
            counts.record(.file(error.file), isGood: false)
            logger?.warning(
                isFirst
                    ? "a file of TLS can't be used" : "a file of TLS can't be used; its last good content stays in use",
                metadata: ["file": "\(error.file)", "reason": "\(error.reason)"])
        }
    }

    private func replaced(_ files: TLSMaterial.Files) {
        for file in files.all { counts.record(.file(file), isGood: true) }
        onChange(files)
        logger?.info(
            "certificates, keys or trust anchors have changed; new connections use them",
            metadata: ["files": "\(files.all.joined(separator: " "))"])
    }

    private func note(_ pem: SecretBytes?, _ kind: CertificateEnd.Kind, _ path: String?) {
        guard let pem, let path else { return }
        let found = TLSFileCheck.ends(of: pem)
        ends.withLock { $0[CertificateFile(kind: kind, path: path)] = found }
    }

    private func recovered(_ files: TLSMaterial.Files) {
        for file in files.all where faults.withLock({ $0.removeValue(forKey: file) }) != nil {
            counts.record(.file(file), isGood: true)
            logger?.info("a file of TLS can be used again", metadata: ["file": "\(file)"])
        }
    }

    private static func replacement(
        of material: TLSMaterial, by parts: [SecretBytes?]
    ) throws(UnusableFile) -> () -> Void {
        do {
            let files = try parts.map { part in try part.map { try $0.withSpan { try MemoryFile($0) } } }
            let id = try parts[0]?.withSpan { try Fingerprint($0) }.number ?? 0
            return { material.replace(certificate: files[0], key: files[1], anchors: files[2], certificateID: id) }
        } catch { throw UnusableFile(file: material.files.all.first ?? "", reason: "\(error)") }
    }
}

extension TLSMaterial.Files {
    init(_ tls: TLSSettings, extra: String?) {
        self.init(certificate: tls.certFile, key: tls.keyFile, anchors: tls.caFile ?? extra)
    }
}

/// A file that can't be used, and the reason.
struct UnusableFile: Error {
    let file: String
    let reason: String

    /// Reads a PEM file. Blocks.
    static func read(_ path: String) throws(UnusableFile) -> SecretBytes {
        do throws(CryptographyError) {
            return try SecretFile.read(path: path, limit: 4 << 20, trimsLineEnd: false)
        } catch { throw UnusableFile(file: path, reason: "\(error)") }
    }
}

/// Contents of files, for comparison with later contents. An element is `nil` if no such file is configured.
struct FileContents: Equatable {
    private let all: [SecretBytes?]

    init(_ all: [SecretBytes?]) { self.all = all }

    static func == (one: FileContents, other: FileContents) -> Bool {
        one.all.count == other.all.count
            && zip(one.all, other.all).allSatisfy { one, other in
                if let one, let other { one.isEqual(to: other) } else { one == nil && other == nil }
            }
    }
}
