import Configuration
import FileSystem
import Heimdallr
import PostgresStore

/// Checks the connection string of a store in PostgreSQL without a connection.
enum StoreCheck {
    /// - Returns: the fault, with advice. `nil` also where a command prints the connection string, because a check runs no
    ///   command, and without libpq, which the start reports.
    static func fault(_ configuration: Configuration, environment: [String: String]) -> String? {
        guard case .postgres(let settings) = configuration.store else { return nil }
        let text: Secret
        switch settings.connection {
        case .literal(let literal): text = Secret(literal)
        case .environment(let name): text = Secret(environment[name] ?? "")
        case .command: return nil
        case .file(let path):
            guard let bytes = try? FileSystem.read(path, limit: 64 * 1024) else { return nil }
            text = Secret(bytes)
        }
        return OAuthAccessTokenPostgresStore.fault(in: text, trustAnchorsFile: configuration.trustAnchorsFile)
    }
}
