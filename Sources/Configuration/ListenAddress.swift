/// Where a listener binds.
public enum ListenAddress: Sendable, Hashable {
    /// `host` is a numeric address or a name; port 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    /// `path` is absolute; `mode` holds the permissions of the socket's file, `nil` for the owner's alone (0600).
    case unix(path: String, mode: UInt16?)
}
