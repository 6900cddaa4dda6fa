import Administration
import Configuration
import Cryptography
import CurlTransport
import FileSystem
import Logging
import Reactor
import Reports
import Synchronization

/// A user of a group of PEM files: a certificate, its key and trust anchors, each if it is configured.
protocol PEMFilesUser: AnyObject, Sendable {
    init(_ files: TLSMaterial.Files)

    /// Checks new content.
    /// - Returns: a function that puts the content into use.
    /// - Throws: `UnusableFile`, or another error about the first file.
    func prepare(_ pem: PEMGroup) throws -> @Sendable () -> Void

    /// Called when the configuration no longer names the files. They may change before it names them again.
    func forgotten()
}

/// The last good content of the configuration's PEM files. All users of the same group of files share one object. Any
/// thread; reading blocks.
final class PEMFiles<User: PEMFilesUser>: Sendable {
    private struct Entry: Sendable {
        let user: User
        var digests = LastGood<[Fingerprint?], UnusableFile>()
        /// End times of the certificates by file.
        var ends: [CertificateEnd: [Int64]] = [:]
    }

    private typealias Group = (files: TLSMaterial.Files, entry: Entry)
    private typealias News = (group: Group, outcome: ReadingOutcome<UnusableFile>, use: (@Sendable () -> Void)?)

    private let kind: CertificateEnd.Kind
    private let counts: ReloadCounts
    private let logger: Logger?
    private let onChange: @Sendable (TLSMaterial.Files) -> Void
    private let entries = Mutex<[TLSMaterial.Files: Entry]>([:])

    /// - Parameters:
    ///   - kind: role of the certificates.
    ///   - onChange: called after files that were used have other content, or are good again.
    init(
        _ kind: CertificateEnd.Kind, counts: ReloadCounts, logger: Logger?,
        onChange: @escaping @Sendable (TLSMaterial.Files) -> Void = { _ in }
    ) {
        self.kind = kind
        self.counts = counts
        self.logger = logger
        self.onChange = onChange
    }

    /// Reads the groups that were not read yet. Returns their faults.
    @discardableResult
    func add(_ wanted: Set<TLSMaterial.Files>, ifGood: Bool = false) async -> [UnusableFile] {
        await BlockingWork.run { [self] in
            let known = entries.withLock { Set($0.keys) }
            let new = wanted.subtracting(known).map { (files: $0, entry: Entry(user: User($0))) }
            let news = read(new)
            let faults = news.compactMap(\.group.entry.digests.fault)
            if ifGood, !faults.isEmpty { return faults }
            for path in new.flatMap(\.files.all) { counts.expect(.file(path)) }
            entries.withLock { entries in for (files, entry) in new { entries[files] = entry } }
            take(news)
            return faults
        }
    }

    /// Forgets the other groups.
    func keep(_ wanted: Set<TLSMaterial.Files>) {
        entries.withLock { entries in
            for (files, entry) in entries where !wanted.contains(files) { entry.user.forgotten() }
            entries = entries.filter { wanted.contains($0.key) }
        }
    }

    subscript(files: TLSMaterial.Files) -> User? { entries.withLock { $0[files]?.user } }

    var paths: Set<String> { Set(entries.withLock { $0.keys.flatMap(\.all) }) }

    /// Files that can't be used now, with the reasons.
    var unused: Set<UnusableFile> { Set(entries.withLock { $0.values.compactMap(\.digests.fault) }) }

    /// Returns the first expiry in each file's last good content. For trust anchors it is the next expiry, because some
    /// anchors may have expired without consequences.
    func certificateEnds(at now: Int64) -> [CertificateEnd] {
        let all: [CertificateEnd: [Int64]] = entries.withLock { entries in
            entries.values.reduce(into: [:]) { $0.merge($1.ends) { one, _ in one } }
        }
        return all.compactMap { end, times in
            let first = end.kind == .trustAnchors ? times.filter { $0 > now }.min() ?? times.max() : times.min()
            return first.map { CertificateEnd(end.kind, end.name, at: $0) }
        }.sorted { ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name) }
    }

    /// Reads each group with one of these paths again. After a fault, the last good content stays in use.
    func readAgain(_ paths: Set<String>) {
        take(read(entries.withLock { $0.filter { !paths.isDisjoint(with: $0.key.all) } }.map { ($0.key, $0.value) }))
    }

    /// Reads each file once, so that all groups with the file get the same content.
    private func read(_ groups: [Group]) -> [News] {
        var read: [String: Result<SecretBytes, any Error>] = [:]
        return groups.map { files, entry in
            var entry = entry
            var use: (@Sendable () -> Void)?
            let outcome: ReadingOutcome<UnusableFile>
            do {
                let pem = try PEMGroup(files) { path in
                    let result = read[path] ?? Result { try UnusableFile.read(path) }
                    read[path] = result
                    return try result.get()
                }
                let digests = try pem.parts.map { try $0?.withSpan { try Fingerprint($0) } }
                let isSame = digests == entry.digests.value
                if !isSame {
                    use = try entry.user.prepare(pem)
                    entry.ends = pem.ends(kind)
                }
                outcome = entry.digests.take(.init(digests), isSame: isSame)
            } catch { outcome = entry.digests.fail(UnusableFile(error, of: files)) }
            return ((files, entry), outcome, use)
        }
    }

    /// Puts all new content into use together, because a token may be requested with one user's and sent with another's.
    private func take(_ news: [News]) {
        let news = entries.withLock { entries in
            news.filter { news in
                guard let former = entries[news.group.files] else { return false }
                entries[news.group.files] = news.group.entry
                news.use?()
                // The first good content is no news.
                return former.digests.wasRead || news.group.entry.digests.fault != nil
            }
        }
        var (good, faults): (Set<String>, Set<UnusableFile>) = ([], [])
        for ((files, _), outcome, _) in news {
            switch outcome {
            case .unchanged: break
            case .taken(let isRecovery):
                good.formUnion(files.all)
                onChange(files)
                logger?.info(
                    isRecovery
                        ? "files of TLS can be used again; new connections use them"
                        : "certificates, keys or trust anchors have changed; new connections use them",
                    metadata: ["files": "\(files.all.joined(separator: " "))"])
            case .failed(let fault, let hasValue, let isNew):
                guard isNew, faults.insert(fault).inserted else { continue }
                counts.record(.file(fault.file), isGood: false)
                logger?.warning(
                    hasValue
                        ? "a file of TLS can't be used; its last good content stays in use"
                        : "a file of TLS can't be used",
                    metadata: ["file": "\(fault.file)", "reason": "\(fault.reason)"])
            }
        }
        for file in good { counts.record(.file(file), isGood: true) }
    }
}

struct PEMGroup {
    let files: TLSMaterial.Files
    let certificate: SecretBytes?
    let key: SecretBytes?
    let anchors: SecretBytes?

    init(
        _ files: TLSMaterial.Files, read: (String) throws -> SecretBytes = UnusableFile.read
    ) throws {
        self.files = files
        certificate = try files.certificate.map(read)
        key = try files.key.map(read)
        anchors = try files.anchors.map(read)
    }

    var parts: [SecretBytes?] { [certificate, key, anchors] }

    /// Returns the end times of the certificates in each file, in seconds since 1970.
    func ends(_ kind: CertificateEnd.Kind) -> [CertificateEnd: [Int64]] {
        var ends: [CertificateEnd: [Int64]] = [:]
        for (kind, file, pem) in [(kind, files.certificate, certificate), (.trustAnchors, files.anchors, anchors)] {
            if let file, let pem { ends[CertificateEnd(kind, file, at: 0)] = TLSFileCheck.ends(of: pem) }
        }
        return ends
    }
}

/// A file that can't be used, and the reason.
struct UnusableFile: Error, Hashable {
    let file: String
    let reason: String

    init(_ file: String, _ reason: String) { (self.file, self.reason) = (file, reason) }

    init(_ error: any Error, of files: TLSMaterial.Files) {
        self = error as? UnusableFile ?? UnusableFile(files.all.first ?? "", "\(error)")
    }

    /// Does work with a file, and names the file in the error.
    static func with<Value>(_ file: String?, _ work: () throws -> Value) throws -> Value {
        do { return try work() } catch { throw UnusableFile(file ?? "", "\(error)") }
    }

    /// Reads a PEM file. Blocks.
    static func read(_ path: String) throws -> SecretBytes {
        try with(path) { try SecretFile.read(path: path, limit: 4 << 20, trimsLineEnd: false) }
    }
}
