import CurlTransport
import Heimdallr
import Synchronization

/// The current clients by name, for clients that use another client's sign-in. Also the process's listeners: no address
/// in a document that `client: auto` reads may lead to them. Any thread.
final class ClientRegistry: Sendable {
    /// Listeners of the proxy and of the administration.
    let listeners = OwnListeners()
    private let clients = Mutex<[String: Heimdallr]>([:])

    func set(_ clients: [Heimdallr]) {
        let named = Dictionary(clients.map { ($0.name, $0) }) { $1 }
        self.clients.withLock { $0 = named }
        for client in clients { client.followSubject() }
    }

    subscript(_ name: String) -> Heimdallr? { clients.withLock { $0[name] } }
}
