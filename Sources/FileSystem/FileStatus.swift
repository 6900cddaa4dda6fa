import Glibc

/// What the kernel says of a file: stat(2).
public struct FileStatus: Sendable, Equatable {
    public enum Kind: Sendable { case regular, folder, link, socket, other }

    public let kind: Kind
    /// Permissions, set-user-ID, set-group-ID and sticky bit.
    public let mode: UInt32
    /// The owner's number.
    public let owner: UInt32
    /// Tells a file from one that has taken its place.
    public let number: UInt64

    /// Of what a symbolic link leads to; `nil` where there is nothing, or nothing that this process may see.
    public init?(of path: String) { self.init(path) { unsafe stat($0, &$1) } }

    /// Of the symbolic link itself, where it is one.
    public init?(ofLinkAt path: String) { self.init(path) { unsafe lstat($0, &$1) } }

    private init?(_ path: String, _ call: (String, inout stat) -> Int32) {
        // A C string ends there.
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
