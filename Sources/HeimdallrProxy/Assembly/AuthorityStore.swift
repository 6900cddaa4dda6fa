import Configuration
import Cryptography
import Proxy
import WireText

/// The folder in which the authorities of intercepted hosts are kept, sealed, and the public roots beside them. All calls
/// block.
struct AuthorityStore {
    private static let (certificates, intermediate, roots) = ("certificates", "intermediate", "roots.pem")
    private static let limit = 64 << 20
    /// 397 days, in seconds: a process that runs for longer is an exception, and a reload renews them before.
    fileprivate static let lifetime: Int64 = 397 * 86_400

    private let folder: PrivateDirectory
    private let key: SealingKey

    /// - Parameter key: seals them.
    init(path: String, key: SealingKey) throws(CryptographyError) {
        folder = try PrivateDirectory(path: path)
        self.key = key
    }

    /// The authorities for these names: where possible, the current or the kept ones.
    /// - Parameter store: `nil`: they are kept in memory only.
    static func authorities(
        for names: InterceptedNames, current: Interception?, in store: AuthorityStore?
    ) throws(CryptographyError) -> Interception {
        let certificates = try store.issued(for: names.hosts, current: current?.certificates)
        let intermediate = try store.intermediate(for: names.domains, current: current?.intermediate)
        let made = Interception(certificates.limited(to: names.hosts), intermediate: intermediate)
        if let current, current.isSame(as: made) { return current }
        if let store, try store.folder.read(roots, limit: limit) != Array(made.rootsPEM.utf8) {
            try store.folder.replace(roots, with: Array(made.rootsPEM.utf8))
        }
        return made
    }
}

extension AuthorityStore {
    /// Finds what keeps a start from having its authorities, as far as that shows without the key, and makes no file.
    static func check(_ configuration: Configuration) throws(CryptographyError) {
        let names = configuration.interceptedNames
        try CertificateAuthority.check(names.hosts)
        if !names.domains.isEmpty { _ = try SigningIntermediate(for: names.domains.names) }
        if let store = configuration.interception?.store { try PrivateDirectory.check(path: store.directory) }
    }

    /// Whether the kept authorities are for these names.
    func holds(_ names: InterceptedNames) throws(CryptographyError) -> Bool {
        let isIssued = names.hosts.isEmpty ? true : try issued()?.fits(names.hosts) ?? false
        let isPermitted = names.domains.isEmpty ? true : try intermediate()?.fits(names.domains) ?? false
        return isIssued && isPermitted
    }
}

extension AuthorityStore? {
    fileprivate func issued(
        for hosts: Set<String>, current: IssuedCertificates?
    ) throws(CryptographyError) -> IssuedCertificates {
        if let current, current.fits(hosts) { return current }
        if let kept = try self?.issued(), kept.fits(hosts) { return kept }
        let made = try CertificateAuthority.issue(for: hosts, lifetime: AuthorityStore.lifetime)
        try self?.keep(made)
        return made
    }

    fileprivate func intermediate(
        for domains: DomainSet, current: SigningIntermediate?
    ) throws(CryptographyError) -> SigningIntermediate? {
        guard !domains.isEmpty else { return nil }
        if let current, current.fits(domains) { return current }
        if let kept = try self?.intermediate(), kept.fits(domains) { return kept }
        let made = try SigningIntermediate(for: domains.names, lifetime: AuthorityStore.lifetime)
        try self?.keep(made)
        return made
    }
}

extension AuthorityStore {
    fileprivate func issued() throws(CryptographyError) -> IssuedCertificates? {
        guard let bytes = try folder.read(Self.certificates, limit: Self.limit) else { return nil }
        return try IssuedCertificates(sealed: bytes, key: key)
    }

    fileprivate func keep(_ made: IssuedCertificates) throws(CryptographyError) {
        try folder.replace(Self.certificates, with: try made.seal(key: key))
    }

    fileprivate func intermediate() throws(CryptographyError) -> SigningIntermediate? {
        guard let bytes = try folder.read(Self.intermediate, limit: Self.limit) else { return nil }
        return try SigningIntermediate(sealed: bytes, key: key)
    }

    fileprivate func keep(_ made: SigningIntermediate) throws(CryptographyError) {
        try folder.replace(Self.intermediate, with: try made.seal(key: key))
    }
}

extension Interception {
    fileprivate func isSame(as other: Interception) -> Bool {
        roots == other.roots && Set(certificates.leaves.keys) == Set(other.certificates.leaves.keys)
    }
}
