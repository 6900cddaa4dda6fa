public import Reactor
import Synchronization

/// The names that enclosed programs have looked up, with an address each. Nothing is looked up outside, so names carry
/// no data out. Any thread.
public final class EnclosedNames: Sendable {
    private struct Table {
        var numbers: [String: UInt32] = [:]
        var names: [String] = []
    }
    private let table = Mutex(Table())

    /// 198.18.0.0/15, for benchmarks of networks (RFC 2544): no network has these addresses.
    private static let first: UInt32 = 0xC612_0000
    /// Limit of names. Each costs some hundred bytes.
    public static let most = 65_536

    public init() {}

    /// Returns the name's address, the same one for the whole run; `nil` when the table is full.
    /// - Parameter name: in lower case, without a final dot.
    public func address(of name: String) -> UInt32? {
        if Self.isLoopback(name) { return 0x7F00_0001 }
        return table.withLock { table in
            if let number = table.numbers[name] { return number }
            guard table.names.count < Self.most else { return nil }
            // The first address of the block would read as a network's.
            let number = Self.first + 1 + UInt32(table.names.count)
            table.numbers[name] = number
            table.names.append(name)
            return number
        }
    }

    /// Returns the name that has this address; `nil` for an address that no name was given.
    public func name(at address: SocketAddress) -> String? {
        guard let numeric = NumericAddress(address), numeric.isIPv4 else { return nil }
        return name(ofNumber: UInt32(truncatingIfNeeded: numeric.low))
    }

    func name(ofNumber address: UInt32) -> String? {
        guard address > Self.first else { return nil }
        return table.withLock { table in
            let place = Int(address - Self.first - 1)
            return place < table.names.count ? table.names[place] : nil
        }
    }

    /// RFC 6761, section 6.3.
    static func isLoopback(_ name: String) -> Bool { name == "localhost" || name.hasSuffix(".localhost") }
}
