/// Settings of the token store.
public enum StoreSettings: Sendable, Equatable {
    case memory
    case file(directory: String, key: SecretSource)
    case postgres(PostgresSettings)

    /// The secrets that open it.
    public var secrets: [SecretSource] {
        switch self {
        case .memory: []
        case .file(_, let key): [key]
        case .postgres(let settings): [settings.connection] + settings.keys
        }
    }
}

/// A token store in PostgreSQL, which many proxies may share.
public struct PostgresSettings: Sendable, Equatable {
    /// A connection string of libpq.
    public var connection: SecretSource
    /// One installation among several in one database.
    public var space = "default"
    /// At least one. The first key seals, any of them opens.
    public var keys: [SecretSource]
}
