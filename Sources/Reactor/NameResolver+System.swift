import Glibc

extension NameResolver {
    /// Limit of addresses for a name.
    private static let maxAddresses = 16

    /// Resolves `name` with getaddrinfo(3). Blocks while name servers do not answer. glibc itself reads a changed
    /// resolv.conf(5) again.
    static func system(_ name: String) -> NameAnswer {
        do throws(ResolutionError) {
            let found = try SocketAddress.lookUp(
                name, family: speaksIPv6 ? AF_UNSPEC : AF_INET, most: maxAddresses)
            var addresses: [NumericAddress] = []
            for address in found.compactMap({ NumericAddress($0) }) where !addresses.contains(address) {
                addresses.append(address)
            }
            guard !addresses.isEmpty else { throw ResolutionError(host: name, message: "no address") }
            return .success(addresses)
        } catch {
            return .failure(NameError("could not resolve host \(error)"))
        }
    }

    /// Whether sockets can use IPv6. Without IPv6, no AAAA records are requested.
    private static let speaksIPv6: Bool = {
        let descriptor = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }()
}
