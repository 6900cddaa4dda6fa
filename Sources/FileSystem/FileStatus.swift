import Glibc

/// Status of a file: stat(2).
public struct FileStatus: Sendable, Equatable {
    public enum Kind: Sendable { case regular, folder, link, socket, other }

    public let kind: Kind
    /// Permissions, set-user-ID, set-group-ID and sticky bit.
    public let mode: UInt32
    /// The owner's user ID.
    public let owner: UInt32
    /// Inode number, which distinguishes a file from its replacement.
    public let number: UInt64

    /// Follows symbolic links; `nil` for a missing or inaccessible file.
    public init?(of path: String) { self.init(path) { unsafe stat($0, &$1) } }

    /// Does not follow a symbolic link; `nil` for a missing or inaccessible file.
    public init?(ofLinkAt path: String) { self.init(path) { unsafe lstat($0, &$1) } }

    private init?(_ path: String, _ call: (String, inout stat) -> Int32) {
        // C would read the path only up to a NUL byte.
        guard !path.utf8.contains(0) else { return nil }
        var status = stat()
        guard call(path, &status) == 0 else { return nil }
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .folder
            case S_IFLNK: .link
            case S_IFSOCK: .socket
            default: .other
            }
        mode = status.st_mode & 0o7777
        owner = status.st_uid
        number = UInt64(status.st_ino)
    }
}
