import FileSystem

/// The folder with a running proxy's trust files. Its last process removes it; after a kill, the next proxy of the same user
/// does. All calls block.
struct TrustFolder: Sendable {
    let files: TrustFiles
    private let use: FolderUse

    private static let (prefix, suffix) = ("heimdallr-proxy-", ".trust")
    private static let attempts = 20

    /// `heimdallr-proxy-8080.127.0.0.1.trust`
    static func folderKind(_ name: String) -> String { name + suffix }

    init(roots: [UInt8], folder: String) throws(TrustFiles.Fault) {
        // Until this process holds the folder, another one may take it for abandoned and remove it.
        var fault: TrustFiles.Fault?
        for _ in 0..<Self.attempts {
            let files: TrustFiles
            do throws(TrustFiles.Fault) { files = try TrustFiles(roots: roots, folder: folder) } catch {
                fault = error
                continue
            }
            guard let use = FolderUse(folder) else { continue }
            try files.writeDefaults()
            (self.files, self.use) = (files, use)
            return
        }
        throw fault ?? TrustFiles.Fault(description: "\(folder) can't be locked, or is removed again and again")
    }

    func end() { if use.endsLast() { TrustFiles.remove(files.folder) } }

    /// Removes abandoned folders of this user beside this one.
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
