public import Configuration
public import Reactor
import Synchronization

/// Enclosed programs as the proxy sees them: what connects to the sockets of one enclosure.
public struct EnclosedPrograms: Sendable {
    /// Their user of `proxy.users`; `nil` for none.
    let user: String?
    /// Returns the name that a program looked up for the address it dialled; `nil` for an address that is no name's.
    /// Any thread.
    let dialledName: @Sendable (SocketAddress) -> String?

    public init(user: String?, dialledName: @escaping @Sendable (SocketAddress) -> String?) {
        self.user = user
        self.dialledName = dialledName
    }
}

struct EnclosedListener {
    let address: SocketAddress
    let programs: EnclosedPrograms
}

extension UpstreamSettings {
    /// Address at which an enclosed program finds the upstream's `listen`; `nil` if it has none there.
    public var addressInside: SocketAddress? {
        guard case .tcp(let host, let port) = listen, port != 0 else { return nil }
        return SocketAddress(numericHost: host == "localhost" ? "127.0.0.1" : host, port: port)
    }
}

extension ProxyServer {
    /// Accepts the connections of enclosed programs, under whatever configuration is current.
    /// - Parameter sockets: listening sockets of the enclosure.
    /// - Returns: numbers for `release`.
    public func enclose(_ sockets: [PassedSocket], _ programs: EnclosedPrograms) throws(SystemError) -> [Int] {
        var numbers: [Int] = []
        for socket in sockets {
            let number = state.withLock { state in
                state.lastEnclosed -= 1
                return state.lastEnclosed
            }
            for shard in current.shards {
                let copy = try socket.listeningSocket()
                shard.loop.execute { shard.value.enclose(copy, number: number, programs) }
            }
            numbers.append(number)
        }
        return numbers
    }

    /// Closes the listeners of an enclosure whose program has ended.
    public func release(_ numbers: [Int]) {
        for shard in current.shards {
            shard.loop.execute { for number in numbers { shard.value.release(number) } }
        }
    }
}
