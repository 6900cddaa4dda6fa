import Glibc

extension NameResolver {
    /// Limit of addresses for a name; a connection tries fewer.
    private static let maxAddresses = 16

    /// Resolves `name` with getaddrinfo(3). Blocks for as long as name servers do not answer. glibc reads
    /// resolv.conf(5) again when it changes.
    static func system(_ name: String) -> NameAnswer {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_family = speaksIPv6 ? AF_UNSPEC : AF_INET
        var list: UnsafeMutablePointer<addrinfo>?
        let result = unsafe getaddrinfo(name, nil, &hints, &list)
        guard result == 0 else {
            let reason =
                result == EAI_SYSTEM
                ? SystemError("getaddrinfo").description : unsafe String(cString: gai_strerror(result))
            return .failure(NameError("could not resolve host \(name): \(reason)"))
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [NumericAddress] = []
        var next = unsafe list
        while let info = unsafe next, addresses.count < maxAddresses {
            let address = unsafe SocketAddress(UnsafePointer(info.pointee.ai_addr))
            if let address = address.flatMap({ NumericAddress($0) }), !addresses.contains(address) {
                addresses.append(address)
            }
            unsafe next = info.pointee.ai_next
        }
        guard !addresses.isEmpty else { return .failure(NameError("could not resolve host \(name): no address")) }
        return .success(addresses)
    }

    /// Whether sockets can use IPv6. Without IPv6, no AAAA records are requested.
    private static let speaksIPv6: Bool = {
        let descriptor = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }()
}
