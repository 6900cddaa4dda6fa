import CurlTransport
import Heimdallr
import Synchronization

/// The process around a client: the current clients by name, for clients that use another client's sign-in, and the listeners
/// that no document may lead to. Any thread.
final class ClientRegistry: Sendable {
    /// Of the proxy and of the administration.
    let listeners = OwnListeners()
    private let clients = Mutex<[String: Heimdallr]>([:])

    func set(_ clients: [Heimdallr]) {
        let named = Dictionary(clients.map { ($0.name, $0) }) { $1 }
        self.clients.withLock { $0 = named }
    }

    subscript(_ name: String) -> Heimdallr? { clients.withLock { $0[name] } }
}
