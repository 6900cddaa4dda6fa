import HTTPServer
import Heimdallr
import Reactor

/// Source of the passwords of one connection: the program's address, or its user on a Unix socket. Shared by all
/// requests of the connection. Loop's thread only.
final class LoginSource {
    /// Name of the source in `FailedLoginLimit` and in the log.
    let name: String
    /// The user whose right password was noted last, and the time until which it need not be noted again.
    var noted: (user: String, until: LoopTime)?

    init(_ source: ProgramSource, address: SocketAddress?) {
        name =
            source.peer.map { "uid \($0.user)" }
            ?? (address ?? source.address).map { FailedLoginLimit.name(address: $0.host) } ?? "unknown"
    }
}

/// Users whose password was right lately, by source. A value with a limited size.
struct RightLogins {
    static let lifetime = Duration.seconds(3600)
    private static let capacity = 1024

    private struct Key: Hashable {
        let source: String
        let user: String
    }

    private var times: [Key: LoopTime] = [:]

    mutating func note(_ user: String, from source: String, at now: LoopTime) {
        let key = Key(source: source, user: user)
        if times[key] == nil, times.count >= Self.capacity { makeRoom(now) }
        times[key] = now
    }

    func has(_ user: String, from source: String, at now: LoopTime) -> Bool {
        guard let time = times[Key(source: source, user: user)] else { return false }
        return now < time + Self.lifetime
    }

    /// Drops entries that are too old. If there are none, drops the oldest half.
    private mutating func makeRoom(_ now: LoopTime) {
        times = times.filter { now < $0.value + Self.lifetime }
        guard times.count >= Self.capacity else { return }
        let middle = times.values.sorted()[times.count / 2]
        times = times.filter { $0.value > middle }
    }
}
