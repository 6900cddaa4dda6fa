import Synchronization

/// Addresses that failed a connection which another address of the same name got, mostly by silence. For a time they are
/// tried last, so that only one connection waits for them. Any thread.
public final class SilentAddresses: Sendable {
    private static let life = Duration.seconds(120)
    private static let most = 1024
    private let ends = Mutex<[SocketAddress: LoopTime]>([:])

    public init() {}

    public func note(_ addresses: [SocketAddress]) {
        guard !addresses.isEmpty else { return }
        let now = LoopTime.current()
        ends.withLock { ends in
            for address in addresses {
                if ends.count >= Self.most { ends = ends.filter { $0.value > now } }
                if ends.count < Self.most || ends[address] != nil { ends[address] = now + Self.life }
            }
        }
    }

    /// Returns the addresses in the order of the attempts: families take turns, beginning with the preferred one
    /// (RFC 8305, section 4), and the addresses noted here are the last.
    public func order(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard addresses.count > 1 else { return addresses }
        let preferred = addresses.filter { $0.family == addresses[0].family }
        let others = addresses.filter { $0.family != addresses[0].family }
        let turns = addresses.indices.flatMap { turn in
            preferred.dropFirst(turn).prefix(1) + others.dropFirst(turn).prefix(1)
        }
        let now = LoopTime.current()
        let silent = ends.withLock { ends in turns.filter { ends[$0].map { $0 > now } ?? false } }
        return silent.isEmpty ? turns : turns.filter { !silent.contains($0) } + silent
    }
}
