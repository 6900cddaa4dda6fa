import CLinux
import Glibc

public struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    public enum Kind: Sendable, Hashable {
        case ipv4(address: UInt32, port: UInt16)
        /// `scope` is the interface index of a link-local address, otherwise 0.
        case ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)
        case unix(path: String)
    }
    public let kind: Kind

    public init(_ kind: Kind) { self.kind = kind }

    /// Resolves `host` to addresses for listening. getaddrinfo(3). Blocks: must not be called on a loop.
    public static func resolve(host: String, port: UInt16) throws(ResolutionError) -> [SocketAddress] {
        try lookUp(host, service: String(port), flags: AI_PASSIVE | AI_NUMERICSERV)
    }

    /// Resolves `host` to addresses, the preferred address first (RFC 6724). getaddrinfo(3). Blocks.
    /// - Parameters:
    ///   - flags: `ai_flags` of `struct addrinfo`.
    ///   - most: limit of addresses.
    public static func lookUp(
        _ host: String, service: String? = nil, family: Int32 = AF_UNSPEC, flags: Int32 = 0, most: Int = .max
    ) throws(ResolutionError) -> [SocketAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_family = family
        unsafe hints.ai_flags = flags
        var list: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(host, service, &hints, &list)
        guard result == 0 else {
            let message =
                result == EAI_SYSTEM
                ? SystemError("getaddrinfo").description : unsafe String(cString: gai_strerror(result))
            throw ResolutionError(host: host, message: message, isFinal: result == EAI_NONAME || result == noData)
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = unsafe list
        while let info = unsafe next, addresses.count < most {
            if let address = unsafe SocketAddress(info.pointee.ai_addr), !addresses.contains(address) {
                addresses.append(address)
            }
            unsafe next = info.pointee.ai_next
        }
        return addresses
    }

    /// EAI_NODATA: the name exists, and has no address of the family.
    private static let noData: Int32 = -5

    /// Reads a kernel address; `nil` for other address families.
    public init?(_ pointer: UnsafePointer<sockaddr>?) {
        guard let pointer = unsafe pointer else { return nil }
        switch Int32(unsafe pointer.pointee.sa_family) {
        case AF_INET:
            let address = unsafe UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in.self)
            kind = .ipv4(address: UInt32(bigEndian: address.sin_addr.s_addr), port: UInt16(bigEndian: address.sin_port))
        case AF_INET6:
            let address = unsafe UnsafeRawPointer(pointer).loadUnaligned(as: sockaddr_in6.self)
            let (high, low) = unsafe unsafeBitCast(address.sin6_addr, to: (UInt64, UInt64).self)
            kind = .ipv6(
                high: UInt64(bigEndian: high), low: UInt64(bigEndian: low), scope: address.sin6_scope_id,
                port: UInt16(bigEndian: address.sin6_port))
        default: return nil
        }
    }

    /// Local address of a socket (getsockname(2)); `nil` for a Unix socket and for an unbound one.
    public init?(own descriptor: Int32) { unsafe self.init(of: descriptor, getsockname) }

    /// Remote address of a socket (getpeername(2)); `nil` for a Unix socket and for an unconnected one.
    public init?(peer descriptor: Int32) { unsafe self.init(of: descriptor, getpeername) }

    /// Address that the program had dialled before the kernel redirected the connection to our socket (REDIRECT in
    /// iptables-extensions(8)); `nil` if the connection was not redirected.
    init?(original descriptor: Int32) {
        // SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST. A socket of IPv6 may carry IPv4.
        for level in [Int32(IPPROTO_IP), Int32(IPPROTO_IPV6)] {
            let address = unsafe SocketAddress(of: descriptor) {
                unsafe getsockopt($0, level, heimdallr_original_destination, $1, $2)
            }
            guard let address else { continue }
            // The kernel also answers for connections that it did not redirect. Then both addresses are equal.
            if let own = SocketAddress(own: descriptor), own.port == address.port,
                NumericAddress(own) == NumericAddress(address)
            {
                return nil
            }
            self = address
            return
        }
        return nil
    }

    private init?(
        of descriptor: Int32,
        _ ask: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) {
        var storage = sockaddr_storage()
        let address = unsafe withKernelAddress(&storage) { pointer, length -> SocketAddress? in
            var length = length
            guard unsafe ask(descriptor, pointer, &length) == 0 else { return nil }
            return unsafe SocketAddress(UnsafePointer(pointer))
        }
        guard let address else { return nil }
        self = address
    }

    /// Port; 0 for a Unix socket.
    public var port: UInt16 {
        switch kind {
        case .ipv4(_, let port), .ipv6(_, _, _, let port): port
        case .unix: 0
        }
    }

    public var description: String {
        switch kind {
        case .ipv4: "\(host):\(port)"
        case .ipv6: "[\(host)]:\(port)"
        case .unix: "unix:\(host)"
        }
    }

    /// The IP address without port and brackets, or the path of a Unix socket.
    public var host: String {
        switch kind {
        case .ipv4(let address, _):
            "\(address >> 24).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
        case .ipv6(let high, let low, _, _): Self.text(high: high, low: low)
        case .unix(let path): path
        }
    }

    private static func text(high: UInt64, low: UInt64) -> String {
        var address = unsafe unsafeBitCast((high.bigEndian, low.bigEndian), to: in6_addr.self)
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        return unsafe buffer.withUnsafeMutableBufferPointer { buffer in
            guard let text = unsafe inet_ntop(AF_INET6, &address, buffer.baseAddress, socklen_t(buffer.count)) else {
                return "::"
            }
            return unsafe String(cString: text)
        }
    }

    /// AF_INET, AF_INET6 or AF_UNIX.
    public var family: Int32 {
        switch kind {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Lends this address to `body` in the kernel's form.
    public func withKernelForm<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) throws(SystemError)
        -> Result
    {
        switch kind {
        case .ipv4(let host, let port):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = host.bigEndian
            return unsafe withKernelAddress(&address) { unsafe body(UnsafePointer($0), $1) }
        case .ipv6(let high, let low, let scope, let port):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_scope_id = scope
            unsafe address.sin6_addr = unsafeBitCast((high.bigEndian, low.bigEndian), to: in6_addr.self)
            return unsafe withKernelAddress(&address) { unsafe body(UnsafePointer($0), $1) }
        case .unix(let path):
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            let room = MemoryLayout.size(ofValue: address.sun_path)
            guard bytes.count < room, !bytes.contains(0) else { throw SystemError("bind", code: ENAMETOOLONG) }
            unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
            return unsafe withKernelAddress(&address) { unsafe body(UnsafePointer($0), $1) }
        }
    }
}

/// Lends an address structure of the C library, and its size, as system calls take them.
func withKernelAddress<Address, Result>(
    _ address: inout Address, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
) -> Result {
    unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
            unsafe body(pointer, socklen_t(MemoryLayout<Address>.size))
        }
    }
}

public struct ResolutionError: Error, Sendable, CustomStringConvertible {
    public let host: String
    let message: String
    /// Whether the name has no address. Otherwise a later look-up may find one.
    var isFinal = false
    /// The resolver's words, without the name.
    public var reason: String { message }
    public var description: String { "\(host): \(message)" }
}

extension SocketAddress {
    /// Reads a numeric address as inet_pton(3) does: no names, no short forms; `nil` for anything else.
    public init?(numericHost text: String, port: UInt16) {
        var four = in_addr()
        var six = in6_addr()
        if unsafe inet_pton(AF_INET, text, &four) == 1 {
            self.init(.ipv4(address: UInt32(bigEndian: four.s_addr), port: port))
        } else if unsafe inet_pton(AF_INET6, text, &six) == 1 {
            let (high, low) = unsafe unsafeBitCast(six, to: (UInt64, UInt64).self)
            self.init(.ipv6(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low), scope: 0, port: port))
        } else {
            return nil
        }
    }
}
