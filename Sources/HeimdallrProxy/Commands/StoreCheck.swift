import Configuration
import Cryptography
import Heimdallr
import PostgresStore

/// Checks the connection string of a store in PostgreSQL without a connection.
enum StoreCheck {
    /// - Returns: the fault, with advice. `nil` also where a command prints the connection string, because a check runs no
    ///   command, and without libpq, which the start reports.
    static func fault(_ configuration: Configuration, environment: [String: String]) -> String? {
        guard case .postgres(let settings) = configuration.store else { return nil }
        guard let value = try? settings.connection.value(environment) else { return nil }
        let text = value.withSpan { Secret($0) }
        return OAuthAccessTokenPostgresStore.fault(in: text, trustAnchorsFile: configuration.trustAnchorsFile)
    }
}
