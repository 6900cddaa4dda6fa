import Configuration
import Cryptography
import FileSystem
import Glibc
import Heimdallr
import Proxy
import Reactor
import Synchronization
import WireText

/// An authority that can be stored.
private protocol Sealable {
    init(sealed: [UInt8], key: SealingKey) throws(CryptographyError)
    func seal(key: SealingKey) throws(CryptographyError) -> [UInt8]
}

extension IssuedCertificates: Sealable {}
extension SigningIntermediate: Sealable {}

/// The folder with the sealed authorities of intercepted hosts and with the public roots. All calls block.
///
/// Several processes may use the folder. A lock makes the first new authority everybody's: it is held from the making of
/// an authority until `save`, or until the last reference to this object is released.
final class AuthorityStore: Sendable {
    private static let (certificates, intermediate, roots) = ("certificates", "intermediate", "roots.pem")
    private static let lockName = "lock"
    /// Longest wait for another process, which holds the lock for a part of its start.
    private static let patience = Duration.seconds(20)
    private static let limit = 64 << 20
    /// Lifetime of an authority: 397 days, in seconds. Few processes run longer. A reload replaces old authorities.
    private static let lifetime: Int64 = 397 * 86_400

    private let folder: PrivateDirectory
    private let key: SealingKey
    private let lock = Mutex<FileLock?>(nil)

    init(path: String, key: SealingKey) throws {
        folder = try PrivateDirectory(path: path)
        self.key = key
    }

    /// Returns the store of a configuration; `nil` if it keeps its authorities in memory. Creates a missing folder.
    static func of(_ configuration: Configuration, _ secrets: SecretCache) async throws -> AuthorityStore? {
        guard let store = configuration.interception?.store else { return nil }
        let text = try await StoreAssembly(configuration: configuration, secrets: secrets).secret(
            store.key, "interception.key")
        let key = try TokenStoreKey(text).sealing
        return try await BlockingWork.run { try AuthorityStore(path: store.directory, key: key) }
    }

    /// Contents of files that `save` has to write.
    typealias Unsaved = [(file: String, bytes: [UInt8])]

    /// Returns the authorities for these names: the current or the stored authorities if they fit, else new ones. Writes
    /// nothing: `unsaved` has the new contents.
    /// - Parameter store: `nil` keeps new authorities in memory only.
    static func authorities(
        for names: InterceptedNames, current: Interception?, in store: AuthorityStore?
    ) throws -> (interception: Interception, unsaved: Unsaved) {
        var unsaved: Unsaved = []
        let issued = try authority(current?.certificates, certificates, in: store, &unsaved) {
            $0.fits(names.hosts)
        } making: {
            try CertificateAuthority.issue(for: names.hosts, lifetime: lifetime)
        }
        var signing: SigningIntermediate?
        if !names.domains.isEmpty {
            signing = try authority(current?.intermediate, intermediate, in: store, &unsaved) {
                $0.fits(names.domains)
            } making: {
                try SigningIntermediate(for: names.domains.names, lifetime: lifetime)
            }
        }
        let made = Interception(issued.limited(to: names.hosts), intermediate: signing)
        if let current, current.isSame(as: made) { return (current, []) }
        let pem = Array(made.rootsPEM.utf8)
        if let store, try store.folder.read(roots, limit: limit) != pem { unsaved.append((roots, pem)) }
        return (made, unsaved)
    }

    func save(_ unsaved: Unsaved) throws {
        defer { lock.withLock { $0 = nil } }
        if !unsaved.isEmpty { try takeLock() }
        for (file, bytes) in unsaved { try folder.replace(file, with: bytes) }
    }

    /// Waits until no other process makes authorities in this folder. In a folder that can't be locked, such as a
    /// read-only one, nothing can be saved either.
    private func takeLock() throws {
        guard lock.withLock({ $0 == nil }) else { return }
        let deadline = ContinuousClock.now + Self.patience
        repeat {
            let taken: FileLock?
            do throws(FileSystem.Fault) { taken = try folder.tryLock(Self.lockName) } catch {
                guard case .system = error else { throw error }
                return
            }
            if let taken { return lock.withLock { $0 = taken } }
            usleep(5_000)
        } while ContinuousClock.now < deadline
        throw FileSystem.Fault.untrusted(
            path: folder.path, reason: "is locked by another process, which is starting: end that process, or wait")
    }

    /// Returns the current authority if it fits, else the stored authority if it fits, else a new one.
    private static func authority<Authority: Sealable>(
        _ current: Authority?, _ file: String, in store: AuthorityStore?, _ unsaved: inout Unsaved,
        fits: (Authority) -> Bool, making make: () throws -> Authority
    ) throws -> Authority {
        if let current, fits(current) { return current }
        guard let store else { return try make() }
        if let kept: Authority = try store.kept(file), fits(kept) { return kept }
        try store.takeLock()
        // Another process may have made one since.
        if let kept: Authority = try store.kept(file), fits(kept) { return kept }
        let made = try make()
        unsaved.append((file, try made.seal(key: store.key)))
        return made
    }

    private func kept<Authority: Sealable>(_ file: String) throws -> Authority? {
        guard let bytes = try folder.read(file, limit: Self.limit) else { return nil }
        return try Authority(sealed: bytes, key: key)
    }

    /// Checks whether a start could make its authorities, without the key and without creating a file.
    static func check(_ configuration: Configuration) throws {
        let names = configuration.interceptedNames
        try CertificateAuthority.check(names.hosts)
        if !names.domains.isEmpty { _ = try SigningIntermediate(for: names.domains.names) }
        if let store = configuration.interception?.store { try PrivateDirectory.check(path: store.directory) }
    }

    /// Whether the stored authorities are for these names, and have at least a third of their lifetime left.
    func holds(_ names: InterceptedNames) throws -> Bool {
        let (issued, signing): (IssuedCertificates?, SigningIntermediate?)
        issued = names.hosts.isEmpty ? nil : try kept(Self.certificates)
        signing = names.domains.isEmpty ? nil : try kept(Self.intermediate)
        return (issued?.fits(names.hosts) ?? names.hosts.isEmpty)
            && (signing?.fits(names.domains) ?? names.domains.isEmpty)
    }
}

extension Interception {
    fileprivate func isSame(as other: Interception) -> Bool {
        roots == other.roots && Set(certificates.leaves.keys) == Set(other.certificates.leaves.keys)
    }
}
