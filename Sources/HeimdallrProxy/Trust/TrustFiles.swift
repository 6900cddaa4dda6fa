import Configuration
import Cryptography
import FileSystem
import WireText

/// Files and environment variables that make a program trust our roots in addition to its usual roots. All calls block.
///
/// The proxy calls `writeDefaults` at its start and whenever its roots change. `exec` calls `variables` for each
/// program. The proxy calls `remove` at its end. Several processes of one user may make these calls at the same time.
///
/// Other users can read the certificates that root writes, because root's apt reads them as the user `_apt`, and those in
/// a folder that others may enter, such as a service's runtime folder: `SharedRoots` finds them for `exec`. The
/// certificates are public. Files in other folders can be read by this user alone.
struct TrustFiles: Sendable {
    /// A fault of the folder or the certificates, with the remedy.
    struct Fault: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    /// Absolute path of a folder that only this user can list and change.
    let folder: String
    private let roots: CertificateBundle
    private let systemBundle: String?

    private static let bundle = "bundle.pem"
    static let addition = "roots.pem"
    private static let javaStore = "truststore.jks"
    private static let phpFolder = "php"
    private static let trustStoreOption = "-Djavax.net.ssl.trustStore="
    static let settingsLimit = 1 << 20
    /// Permissions of certificates, and of settings, which may hold a user's passwords.
    private static let (readable, secret): (UInt32, UInt32) = (0o644, 0o600)

    /// - Parameters:
    ///   - folder: created if it is missing. Others may enter it if the user is root, or if they may enter its parent,
    ///     which must exist.
    ///   - systemBundle: the file of the system's certificates; `nil` if there is none.
    init(
        roots pem: [UInt8], folder: String, systemBundle: String? = CertificateBundle.systemPath
    ) throws(Fault) {
        // Permits only characters without a special meaning in the files and variables.
        let isPlain = folder.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "/._-+@~".utf8.contains($0) }
        guard folder.hasPrefix("/"), isPlain else {
            throw Fault(
                description: "the folder \(folder) has characters that some programs can't read in a path: "
                    + "use letters, digits and ._-+@~")
        }
        var roots = CertificateBundle()
        roots.add(pem: pem)
        guard !roots.certificates.isEmpty else { throw Fault(description: "there is no root for programs to trust") }
        self.folder = folder
        self.roots = roots
        self.systemBundle = systemBundle
        if FileSystem.makeFolder(folder, mode: 0o700), Self.isRoot || Self.isOpen(AwaitedFile.folder(of: folder)) {
            FileSystem.setMode(folder, 0o711)
        }
        guard Self.isOwn(folder) else {
            throw Fault(
                description: "\(folder) can't be created, or other users can list or change it: name a new folder")
        }
    }

    private static var isRoot: Bool { ProcessIdentity.user == 0 }

    private static func isOpen(_ folder: String) -> Bool {
        FileStatus(of: folder).map { $0.mode & 0o001 != 0 } ?? false
    }

    /// Whether this user alone can list and change the folder.
    static func isOwn(_ folder: String) -> Bool {
        guard let status = FileStatus(ofLinkAt: folder), status.kind == .folder else { return false }
        return status.owner == ProcessIdentity.user && status.mode & 0o066 == 0
    }

    /// Returns the files that a running proxy of this user has written; `nil` if there are none.
    static func written(in folder: String) throws(Fault) -> TrustFiles? {
        guard isOwn(folder), let roots = try? FileSystem.read("\(folder)/\(addition)", limit: settingsLimit) else {
            return nil
        }
        return try TrustFiles(roots: roots, folder: folder)
    }

    var rootsPEM: [UInt8] { roots.pem }
    /// Path of the file with only our roots.
    var rootsFile: String { path(Self.addition) }

    /// Writes or replaces the files for programs whose environment sets no `TrustVariable`.
    func writeDefaults() throws(Fault) {
        for (name, bytes) in try Self.bundles(of: roots, systemBundle) {
            try write(bytes, to: name, mode: Self.readable)
        }
        for settings in [SettingsFile.wget, .wget2, .apt] {
            try write(Array(settings.line(naming: path(Self.bundle)).utf8), to: settings.name)
        }
        if !FileSystem.exists(path(Self.phpFolder)) { FileSystem.makeFolder(path(Self.phpFolder), mode: 0o700) }
        try write(Array("curl.cainfo=\"\(path(Self.bundle))\"\n".utf8), to: "\(Self.phpFolder)/heimdallr-proxy.ini")
        // This file comes last, because its presence shows that all files exist.
        try write(roots.pem, to: Self.addition, mode: Self.readable)
    }

    /// Writes the roots, and the bundles with the system's certificates, for programs of other users and in other
    /// containers. Makes a missing folder.
    static func export(roots pem: [UInt8], to folder: String) throws(Fault) {
        var roots = CertificateBundle()
        roots.add(pem: pem)
        FileSystem.makeFolder(folder, mode: 0o755)
        for (name, bytes) in try bundles(of: roots, CertificateBundle.systemPath) + [(addition, roots.pem)] {
            do throws(FileSystem.Fault) {
                try FileSystem.replace("\(folder)/\(name)", with: bytes, mode: readable)
            } catch { throw Fault(description: "\(error)") }
        }
    }

    /// Contents of the files with all that a program has to trust, by their names.
    private static func bundles(
        of roots: CertificateBundle, _ systemBundle: String?
    ) throws(Fault) -> [(name: String, bytes: [UInt8])] {
        var whole = CertificateBundle()
        if let systemBundle { whole.add(at: systemBundle) }
        whole.add(roots)
        do throws(CryptographyError) {
            return [(bundle, whole.pem), (javaStore, try JavaTrustStore.bytes(whole.certificates))]
        } catch { throw Fault(description: "\(error)") }
    }

    /// Returns the variables for a program with this environment. Copies and extends files that the environment names.
    /// - Returns: the variables, without those that already name a file of the folder. Java with a configured trust
    ///   store, and root's apt if its user `_apt` can't read the folder, get no variable and keep their trust anchors.
    func variables(for environment: [String: String]) throws(Fault) -> [String: String] {
        var values: [String: String] = [:]
        for variable in TrustVariable.all {
            let own = environment[variable.name] ?? ""
            if !own.contains("\(folder)/") { values[variable.name] = try value(of: variable, own, environment) }
        }
        return values
    }

    static func remove(_ folder: String) {
        for inner in ["\(folder)/\(phpFolder)", folder] {
            for name in FileSystem.names(in: inner) { FileSystem.remove("\(inner)/\(name)") }
            FileSystem.remove(inner)
        }
    }

    private func value(
        of variable: TrustVariable, _ own: String, _ environment: [String: String]
    ) throws(Fault) -> String? {
        let former = variable.former.compactMap { environment[$0] }.first { !$0.isEmpty }
        switch variable.target {
        case .bundle: return try bundle(after: former, else: Self.bundle)
        case .addition: return try bundle(after: former, else: Self.addition)
        case .settings(.apt) where Self.isRoot && !isReachable: return nil
        case .settings(let file): return try settings(file, after: former ?? Self.defaultPath(of: file, environment))
        case .phpFolders: return "\(own):\(path(Self.phpFolder))"
        case .javaOptions:
            // If the options name a trust store, it can't be extended: the program rejects the proxy's certificates.
            guard !own.contains(Self.trustStoreOption) else { return nil }
            return (own.isEmpty ? "" : own + " ") + Self.trustStoreOption + path(Self.javaStore)
        }
    }

    /// Returns the path of a copy of the former bundle with our roots added. Without a former bundle, or if it is in
    /// our folder already, returns the path of our file `name`.
    private func bundle(after former: String?, else name: String) throws(Fault) -> String {
        guard let former, !former.hasPrefix("\(folder)/") else { return path(name) }
        var bundle = CertificateBundle()
        bundle.add(at: former)
        bundle.add(roots)
        return try writeByContent(bundle.pem, name: name, mode: Self.readable)
    }

    private func settings(_ file: SettingsFile, after former: String?) throws(Fault) -> String {
        guard let former, !former.hasPrefix("\(folder)/"), FileStatus(of: former)?.kind == .regular,
            let text = try? FileSystem.read(former, limit: Self.settingsLimit)
        else { return path(file.name) }
        let bundle = try bundle(after: file.bundle(in: String(decoding: text, as: UTF8.self)), else: Self.bundle)
        return try writeByContent(
            text + Array("\n\(file.line(naming: bundle))".utf8), name: file.name, mode: Self.secret)
    }

    /// Whether other users can enter the folder. If the user `_apt` can't, apt rejects all servers.
    private var isReachable: Bool {
        var path = folder
        while !path.isEmpty {
            guard let status = FileStatus(of: path), status.mode & 0o001 != 0 else { return false }
            path = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        }
        return true
    }

    private static func defaultPath(of file: SettingsFile, _ environment: [String: String]) -> String? {
        file.defaultPaths.compactMap { path in
            let variable = path.prefix { $0 != "/" }
            return environment[String(variable)].map { $0 + path.dropFirst(variable.count) }
        }.first(where: FileSystem.exists)
    }

    /// Writes the bytes to a file named by their digest, if it does not exist yet. Returns the file's path.
    private func writeByContent(_ bytes: [UInt8], name: String, mode: UInt32) throws(Fault) -> String {
        let digest: [UInt8]
        do throws(CryptographyError) { digest = try Digest.sha256(bytes) } catch {
            throw Fault(description: "\(error)")
        }
        let name = "\(Base64.encode(Array(digest.prefix(12)), alphabet: .url))-\(name)"
        if !FileSystem.exists(path(name)) { try write(bytes, to: name, mode: mode) }
        return path(name)
    }

    private func write(_ bytes: [UInt8], to name: String, mode: UInt32 = secret) throws(Fault) {
        do throws(FileSystem.Fault) { try FileSystem.replace(path(name), with: bytes, mode: mode) } catch {
            throw Fault(description: "\(error)")
        }
    }

    private func path(_ name: String) -> String { "\(folder)/\(name)" }
}
