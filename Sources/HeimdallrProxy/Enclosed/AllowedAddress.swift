import Enclosure
import HTTPMessage
import Reactor

struct AllowedAddress: Sendable {
    let authority: Authority

    /// - Returns: `nil` unless it is `HOST:PORT`, of one machine, and not the proxy's own address inside.
    init?(_ text: String) {
        guard let authority = try? Authority(parsing: text), let port = authority.port, port != 0 else { return nil }
        switch authority.host {
        case .name: break
        case .ipv4(let address): guard address != 0 else { return nil }
        case .ipv6(let high, let low):
            guard high != 0 || low == 1 || low >> 32 != 0 && low >> 32 != 0xFFFF else { return nil }
        }
        guard !(authority.host.isLoopback && port == EnclosedProgram.proxyPort) else { return nil }
        self.authority = authority
    }

    /// Returns the addresses at which the program finds it.
    func inside(_ names: EnclosedNames) -> [SocketAddress] {
        let port = authority.port ?? 0
        switch authority.host {
        case .ipv4(let address): return [SocketAddress(.ipv4(address: address, port: port))]
        case .ipv6(let high, let low): return [SocketAddress(.ipv6(high: high, low: low, scope: 0, port: port))]
        case .name(let name):
            let four = names.address(of: name).map { SocketAddress(.ipv4(address: $0, port: port)) }
            let six = authority.host.isLoopback ? SocketAddress(.ipv6(high: 0, low: 1, scope: 0, port: port)) : nil
            return [four, six].compactMap(\.self)
        }
    }
}
