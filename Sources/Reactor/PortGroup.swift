import CLinux
import Glibc

/// The sockets that listen on one address (SO_REUSEPORT of socket(7)): ours, one for each loop, and those of another
/// process of the same user, which takes over from us or we from it.
///
/// A socket that closes takes with it whoever has connected and was not accepted, and whoever is connecting. So before it
/// does, new connections are steered to the others.
public struct PortGroup: Sendable {
    private let descriptor: Int32
    private let address: SocketAddress
    private let own: Set<UInt64>
    /// Who was there first.
    private let elder: Set<UInt64>

    /// - Parameter sockets: ours on one address, just opened to be shared. `nil` for others.
    public init?(_ sockets: [ListeningSocket]) {
        guard let first = sockets.first, !first.isPassed, first.address.family != AF_UNIX else { return nil }
        descriptor = first.descriptor
        address = first.address
        own = Set(sockets.compactMap { Self.inode($0.descriptor) })
        elder = Self.listening(at: address).subtracting(own)
        // What one that is gone has left behind would steer by numbers that are others now.
        _ = heimdallr_stop_steering(descriptor)
    }

    /// Another process listens there, too.
    public var isShared: Bool { !others.isEmpty }

    private var others: Set<UInt64> { Self.listening(at: address).subtracting(own) }

    /// From now on new connections go to the other process. To be called while ours still listen.
    /// - Returns: false when there is none, or it can't be told which sockets are its own: then it may still be ours that
    ///   are chosen.
    public func steerAway() -> Bool {
        guard let target = Self.target(own: own, elder: elder, others: others) else { return false }
        return heimdallr_steer(descriptor, UInt32(target.first), UInt32(target.count)) == 0
    }

    /// Which numbers the others have. The kernel counts in the order in which sockets began to listen; of one that closes,
    /// the last one gets the number.
    static func target(own: Set<UInt64>, elder: Set<UInt64>, others: Set<UInt64>) -> (first: Int, count: Int)? {
        guard !others.isEmpty else { return nil }
        // Who was there before us is gone, and they have come behind us.
        if others.isDisjoint(with: elder) { return (own.count, others.count) }
        // They were there before us.
        return others == elder ? (0, others.count) : nil
    }

    private static func inode(_ descriptor: Int32) -> UInt64? {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Sockets that listen at exactly this address, as /proc/net/tcp has them (proc(5)).
    private static func listening(at address: SocketAddress) -> Set<UInt64> {
        let table = address.family == AF_INET6 ? "/proc/self/net/tcp6" : "/proc/self/net/tcp"
        guard let file = unsafe fopen(table, "re") else { return [] }
        defer { unsafe fclose(file) }
        var found: Set<UInt64> = []
        let wanted = Self.tableText(address)
        var line = [CChar](repeating: 0, count: 512)
        while unsafe fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let fields = text.split(whereSeparator: { $0 == " " || $0 == "\n" })
            guard fields.count > 9, fields[3] == "0A" else { continue }
            if fields[1] == wanted, let inode = UInt64(fields[9]) { found.insert(inode) }
        }
        return found
    }

    /// Words of the address as they lie in memory, in hexadecimal digits.
    static func tableText(_ address: SocketAddress) -> String {
        func digits(_ value: some BinaryInteger, _ count: Int) -> String {
            let text = String(value, radix: 16, uppercase: true)
            return String(repeating: "0", count: count - text.count) + text
        }
        switch address.kind {
        case .ipv4(let host, let port): return digits(host.bigEndian, 8) + ":" + digits(port, 4)
        case .ipv6(let high, let low, _, let port):
            let words = [high, low].flatMap { [UInt32($0 >> 32), UInt32(truncatingIfNeeded: $0)] }
            return words.map { digits($0.bigEndian, 8) }.joined() + ":" + digits(port, 4)
        case .unix: return ""
        }
    }
}
