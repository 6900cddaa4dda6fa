import Configuration
import FileSystem
import Heimdallr
import PostgresStore

/// Reads what opens a store in PostgreSQL, without reaching for it.
enum StoreCheck {
    /// - Returns: what is wrong, and what to do; `nil` also where a command prints the connection string, which is not run
    ///   for it, and where there is no libpq to ask: the start says so.
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
