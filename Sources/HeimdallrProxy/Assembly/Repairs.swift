import Configuration
import CurlTransport
import Heimdallr
import Synchronization

/// Tells the clients in use when a secret or a file of TLS has changed, so that a refused client asks again at once.
/// Any thread.
final class Repairs: Sendable {
    private let clients = Mutex<[RunningClient]>([])

    func use(_ clients: [RunningClient]) { self.clients.withLock { $0 = clients } }

    func changed(_ source: SecretSource) { tell { $0.settings.allSecrets.contains(source) } }

    func changed(_ files: TLSMaterial.Files) {
        tell { client in
            files == TLSMaterial.Files(client.settings.tls, extra: client.trustAnchors)
                || client.settings.clientCertificate.map { files == TLSMaterial.Files(certificate: $0) } ?? false
        }
    }

    /// Tells the clients that exchange the sign-in at this client.
    func tokenCame(to client: String) { tell { $0.settings.auto?.subjectClient == client } }

    private func tell(_ isMeant: (RunningClient) -> Bool) {
        for client in clients.withLock({ $0 }) where isMeant(client) { client.heimdallr.credentialsChanged() }
    }
}

/// The commands of one client. Their output is read at intervals, and may be outdated when the server refuses it. Any
/// thread.
final class RefusedCommands: Sendable {
    private let commands: [LiveSecret]
    private let readAt = Mutex<ContinuousClock.Instant?>(nil)
    /// Shortest time between two readings. Each run of a command may give another output, and so a token request.
    private static let pause = Duration.seconds(60)

    init(_ settings: ClientSettings, _ secrets: SecretCache) {
        commands = settings.allSecrets.filter { if case .command = $0 { true } else { false } }.map(secrets.secret)
    }

    /// Reads the commands' output again. Returns at once.
    func refused() {
        let isDue = readAt.withLock { readAt in
            let isDue = readAt.map { .now - $0 >= Self.pause } ?? true
            if isDue { readAt = .now }
            return isDue
        }
        guard isDue, !commands.isEmpty else { return }
        Task { [commands] in for command in commands { await command.refresh() } }
    }
}
