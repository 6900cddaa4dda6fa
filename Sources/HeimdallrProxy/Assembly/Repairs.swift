import Configuration
import CurlTransport
import Heimdallr
import Synchronization

/// Tells the clients in use when a secret or a file of TLS has changed, so that a refused client asks again at once.
/// Any thread.
final class Repairs: Sendable {
    /// The clients in use, also by what concerns them: a new token or secret does not search thousands of clients.
    private struct InUse {
        var clients: [RunningClient] = []
        var bySecret: [SecretSource: [Heimdallr]] = [:]
        /// By the client whose sign-in they exchange.
        var bySubject: [String: [Heimdallr]] = [:]
    }

    private let inUse = Mutex(InUse())

    func use(_ clients: [RunningClient]) {
        var next = InUse(clients: clients)
        for client in clients {
            for secret in Set(client.settings.allSecrets) {
                next.bySecret[secret, default: []].append(client.heimdallr)
            }
            if let subject = client.settings.auto?.subjectClient {
                next.bySubject[subject, default: []].append(client.heimdallr)
            }
        }
        inUse.withLock { [next] in $0 = next }
    }

    func changed(_ source: SecretSource) { tell(inUse.withLock { $0.bySecret[source] }) }

    func changed(_ files: TLSMaterial.Files) {
        tell(
            inUse.withLock { $0.clients }.filter { client in
                files == TLSMaterial.Files(client.settings.tls, extra: client.trustAnchors)
                    || client.settings.clientCertificate.map { files == TLSMaterial.Files(certificate: $0) } ?? false
            }.map(\.heimdallr))
    }

    /// Tells the clients that exchange the sign-in at this client.
    func tokenCame(to client: String) { tell(inUse.withLock { $0.bySubject[client] }) }

    private func tell(_ clients: [Heimdallr]?) { for client in clients ?? [] { client.credentialsChanged() } }
}

/// The secrets of one client that commands print and servers hand out. The last one read may be outdated when the
/// authorization server refuses it. Any thread.
final class RefusedSecrets: Sendable {
    private let secrets: [LiveSecret]
    private let readAt = Mutex<ContinuousClock.Instant?>(nil)
    /// Shortest time between two readings. Each reading may give another secret, and so a token request.
    private static let pause = Duration.seconds(60)

    init(_ settings: ClientSettings, _ secrets: SecretCache) {
        self.secrets = settings.allSecrets.filter(\.isReadByProxy).map(secrets.secret)
    }

    /// Reads the secrets again. Returns at once.
    func refused() {
        let isDue = readAt.withLock { readAt in
            let isDue = readAt.map { .now - $0 >= Self.pause } ?? true
            if isDue { readAt = .now }
            return isDue
        }
        guard isDue, !secrets.isEmpty else { return }
        Task { [secrets] in for secret in secrets { await secret.refresh() } }
    }
}
