import Glibc

/// A lack of this machine or this process. No server and no network causes it, so its remedy is here.
public enum MachineShortage: Sendable, Hashable, CaseIterable {
    case descriptors
    case descriptorsOfMachine
    case ports
    case memory
    case permission

    /// The shortage that an errno(3) of socket(2), connect(2) or open(2) reports; `nil` for other errors.
    public init?(errno number: Int32) {
        switch number {
        case EMFILE: self = .descriptors
        case ENFILE: self = .descriptorsOfMachine
        case EADDRNOTAVAIL: self = .ports
        case ENOBUFS, ENOMEM: self = .memory
        case EPERM: self = .permission
        default: return nil
        }
    }

    /// Tries to open a socket. getaddrinfo(3) does not say that it could not.
    public static var ofSockets: MachineShortage? {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return MachineShortage(errno: errno) }
        close(descriptor)
        return nil
    }

    /// The fault, to follow a colon.
    public var fault: String {
        switch self {
        case .descriptors: "this process has as many files and sockets open as it may have"
        case .descriptorsOfMachine: "this machine has as many files and sockets open as it may have"
        case .ports: "this machine has no free port, or no address of this family, for a connection"
        case .memory: "this machine has no memory for another connection or file"
        case .permission: "a rule of this machine forbids the connection or the file"
        }
    }

    /// The remedy, to follow a colon.
    public var remedy: String {
        switch self {
        case .descriptors: "raise the limit of file descriptors (ulimit -n, LimitNOFILE=), or lower max_connections"
        case .descriptorsOfMachine: "raise fs.file-max (sysctl), or find the program that holds so many files"
        case .ports: "widen net.ipv4.ip_local_port_range (sysctl), or keep connections open with a longer idle time"
        case .memory: "give this machine or the proxy's container more memory, or lower max_connections"
        case .permission:
            "allow it in this machine's firewall (nft list ruleset), and in the unit's or the container's restrictions"
        }
    }
}
