import Glibc

extension NameResolver {
    /// Limit of addresses for a name.
    private static let maxAddresses = 16

    /// Files that getaddrinfo(3) reads: resolv.conf(5), hosts(5), nsswitch.conf(5), gai.conf(5).
    static let systemFiles: Set<String> = [
        "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf",
    ]

    /// Resolves `name` with getaddrinfo(3). Blocks while name servers do not answer. glibc itself reads a changed
    /// resolv.conf(5) again at the beginning of each look-up.
    static func system(_ name: String, _ family: NameAttempt.Family) -> NameAnswer {
        do throws(ResolutionError) {
            let found = try SocketAddress.lookUp(name, family: family.number, most: maxAddresses)
            var addresses: [NumericAddress] = []
            for address in found.compactMap({ NumericAddress($0) }) where !addresses.contains(address) {
                addresses.append(address)
            }
            guard !addresses.isEmpty else { throw ResolutionError(host: name, message: "no address") }
            return .success(addresses)
        } catch {
            return .failure(NameError("could not resolve host \(error)", isFinal: error.isFinal))
        }
    }
}

extension NameAttempt.Family {
    /// Value for `ai_family`.
    fileprivate var number: Int32 {
        switch self {
        // Without IPv6, no AAAA records are requested.
        case .both: Self.speaksIPv6 ? AF_UNSPEC : AF_INET
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        }
    }

    /// Whether sockets can use IPv6.
    private static var speaksIPv6: Bool {
        let descriptor = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }
}
