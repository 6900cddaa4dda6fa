import FileSystem

/// Decides whether a fault of a file or folder may pass without a change of the configuration. An agent, a mount or a
/// volume may bring a missing file later. A file with wrong content stays wrong.
public enum AwaitedFile {
    /// Whether the file or folder is missing, unreadable for this process, or an empty file. Blocks.
    public static func isAwaited(_ path: String) -> Bool {
        guard FileSystem.isReadable(path) else { return true }
        guard FileStatus(of: path)?.kind == .regular, let content = try? FileSystem.read(path, limit: 4 << 20) else {
            return false
        }
        return content.allSatisfy { $0 == 0x0A || $0 == 0x0D }
    }

    /// Returns the folder that has to exist before `path` can be made.
    public static func folder(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? path.dropLast() : path[...]
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }
}
