import Administration
import Reactor

extension Administration {
    /// All addresses of the admin port. Blocks while a name is resolved.
    var listenAddresses: [SocketAddress] {
        guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]) else {
            return []
        }
        let host = address[..<colon].filter { $0 != "[" && $0 != "]" }
        if let numeric = SocketAddress(numericHost: String(host), port: port) { return [numeric] }
        return (try? SocketAddress.resolve(host: String(host), port: port)) ?? []
    }
}
