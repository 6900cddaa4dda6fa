import FileSystem

/// Path of the folder with a proxy's trust files.
///
/// The variables of programs outlive the folder, and `PHP_INI_SCAN_DIR` and `WGETRC` name code. If the folder, or one
/// above it, is in a place such as /tmp, another user could make it anew after it was removed. There its name has a random
/// part, which others can't see: its parent is closed to them.
enum TrustFolderPath {
    private static let suffix = ".trust"
    /// This process's random part, more than 120 bits.
    static let part = (0..<2).map { _ in
        let digits = String(UInt64.random(in: .min ... .max), radix: 36)
        return String(repeating: "0", count: 13 - digits.count) + digits
    }.joined()

    /// - Parameter plain: absolute path with the name `heimdallr-proxy-PORT.ADDRESS.trust`.
    /// - Returns: the path with the random part, where it is necessary.
    static func forWriting(_ plain: String) -> String {
        isLasting(plain) ? plain : "\(plain.dropLast(suffix.count)).\(part)\(suffix)"
    }

    /// Returns the folders that a proxy may have written for this path: `plain`, and those with a random part that a
    /// process uses.
    static func candidates(_ plain: String) -> [String] {
        guard let slash = plain.lastIndex(of: "/") else { return [] }
        let parent = plain[..<slash]
        let start = plain[plain.index(after: slash)...].dropLast(suffix.count) + "."
        let names = FileSystem.names(in: String(parent)).filter { name in
            name.hasPrefix(start) && name.hasSuffix(suffix)
                && !name.dropFirst(start.count).dropLast(suffix.count).contains(".")
        }
        return [plain] + names.sorted().map { "\(parent)/\($0)" }.filter { FolderUse.alone($0) == nil }
    }

    /// Whether only this user, or the given one, and root can write to the folders above this path.
    /// - Parameter allowsSticky: whether others may make new files there, as in /tmp, but can't replace existing ones.
    static func isLasting(
        _ path: String, for user: UInt32 = ProcessIdentity.user, allowsSticky: Bool = false
    ) -> Bool {
        var path = path[...]
        while let slash = path.lastIndex(of: "/") {
            path = path[..<slash]
            guard let status = FileStatus(of: path.isEmpty ? "/" : String(path)),
                status.owner == 0 || status.owner == user,
                status.mode & 0o022 == 0 || allowsSticky && status.mode & 0o1000 != 0
            else { return false }
        }
        return true
    }
}
