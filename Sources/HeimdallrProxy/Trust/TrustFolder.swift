import FileSystem

/// The folder with a running proxy's trust files. The last process that uses the folder removes it. After a kill, the
/// next proxy of the same user removes it. All calls block.
struct TrustFolder: Sendable {
    let files: TrustFiles
    private let use: FolderUse

    private static let (prefix, suffix) = ("heimdallr-proxy-", ".trust")
    private static let attempts = 20

    /// Returns the end of the folder's name, such as `127.0.0.1.trust` of `heimdallr-proxy-8080.127.0.0.1.trust`.
    static func nameEnd(_ address: String) -> String { address + suffix }

    /// - Parameter isAlone: keeps other processes out until `share`, and throws if one uses the folder.
    init(roots: [UInt8], folder: String, isAlone: Bool = false) throws(TrustFiles.Fault) {
        // Tries again, because another process may remove the folder as abandoned before this process locks it.
        var fault: TrustFiles.Fault?
        for _ in 0..<Self.attempts {
            let files: TrustFiles
            do throws(TrustFiles.Fault) { files = try TrustFiles(roots: roots, folder: folder) } catch {
                fault = error
                continue
            }
            guard let use = isAlone ? FolderUse.alone(folder) : FolderUse(folder) else { continue }
            try files.writeDefaults()
            (self.files, self.use) = (files, use)
            return
        }
        throw fault ?? TrustFiles.Fault(description: "\(folder) can't be locked, or other processes remove it")
    }

    func share() { use.share() }

    func end() { if use.endsLast() { TrustFiles.remove(files.folder) } }

    /// Removes this user's abandoned folders in the same parent folder.
    func removeAbandoned() {
        guard let slash = files.folder.lastIndex(of: "/") else { return }
        let parent = files.folder[..<slash]
        for name in FileSystem.names(in: String(parent))
        where name.hasPrefix(Self.prefix) && name.hasSuffix(Self.suffix) {
            let folder = "\(parent)/\(name)"
            guard folder != files.folder, TrustFiles.isOwn(folder), let alone = FolderUse.alone(folder) else {
                continue
            }
            TrustFiles.remove(alone.path)
        }
    }
}
