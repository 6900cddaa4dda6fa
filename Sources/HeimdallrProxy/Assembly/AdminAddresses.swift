import Administration
import Reactor

extension Administration {
    /// Where the admin port is reached, a name's every address; blocks for a name.
    var listenAddresses: [SocketAddress] {
        guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]) else {
            return []
        }
        let host = address[..<colon].filter { $0 != "[" && $0 != "]" }
        if let numeric = SocketAddress(numericHost: String(host), port: port) { return [numeric] }
        return (try? SocketAddress.resolve(host: String(host), port: port)) ?? []
    }
}
