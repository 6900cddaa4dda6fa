/// Address of a listener.
public enum ListenAddress: Sendable, Hashable {
    /// `host` is a numeric address or a name. With port 0 the kernel chooses the port.
    case tcp(host: String, port: UInt16)
    /// `path` is absolute. `mode` has the permissions of the socket's file; `nil` means 0600, for the owner alone.
    case unix(path: String, mode: UInt16?)

    public var isUnix: Bool { if case .unix = self { true } else { false } }
    /// Whether the kernel chooses the port, so that it is not known before the start.
    public var isChosenByKernel: Bool { if case .tcp(_, port: 0) = self { true } else { false } }
    public var hasFixedPort: Bool { !isUnix && !isChosenByKernel }

    /// The address without permissions.
    public var endpoint: ListenAddress {
        switch self {
        case .tcp: self
        case .unix(let path, _): .unix(path: path, mode: nil)
        }
    }
}

extension ListenAddress: CustomStringConvertible {
    /// `127.0.0.1:8080`, in the configuration's notation.
    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _): "unix:\(path)"
        }
    }
}
