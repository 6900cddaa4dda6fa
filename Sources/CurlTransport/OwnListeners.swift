import Reactor
import Synchronization

/// The addresses of this process's listeners, to which the proxy must not connect: the request would come back.
/// Listeners can open later, so users share one object. Safe on any thread.
public final class OwnListeners: Sendable, Equatable, ExpressibleByArrayLiteral {
    private let addresses: Mutex<[SocketAddress]>

    public init(_ addresses: [SocketAddress] = []) { self.addresses = Mutex(addresses) }

    public convenience init(arrayLiteral addresses: SocketAddress...) { self.init(addresses) }

    public func add(_ address: SocketAddress) { addresses.withLock { if !$0.contains(address) { $0.append(address) } } }

    public func remove(_ address: SocketAddress) { addresses.withLock { $0.removeAll { $0 == address } } }

    public static func == (left: OwnListeners, right: OwnListeners) -> Bool {
        left.addresses.withLock { $0 } == right.addresses.withLock { $0 }
    }

    func contains(_ dialled: NumericAddress, port: UInt16) -> Bool {
        addresses.withLock { addresses in
            addresses.contains { $0.port == port && Self.leads(dialled, to: $0) }
        }
    }

    private static func leads(_ dialled: NumericAddress, to own: SocketAddress) -> Bool {
        guard let own = NumericAddress(own) else { return false }
        let isLoopback = AddressPolicy.loopback.contains { $0.contains(dialled) }
        // A listener on all addresses covers all addresses of this machine.
        if own.isUnspecified {
            return dialled.isUnspecified || isLoopback || InterfaceAddresses.shared.contains(dialled)
        }
        // The dialled address 0.0.0.0 means this machine.
        return own == dialled || (dialled.isUnspecified && AddressPolicy.loopback.contains { $0.contains(own) })
    }
}
