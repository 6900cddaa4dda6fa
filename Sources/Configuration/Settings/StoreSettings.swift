/// Settings of the token store.
public enum StoreSettings: Sendable, Equatable {
    case memory
    case file(directory: String, key: SecretSource)
    case postgres(PostgresSettings)

    /// Sources of the secrets that open the store.
    public var secrets: [SecretSource] {
        switch self {
        case .memory: []
        case .file(_, let key): [key]
        case .postgres(let settings): [settings.connection] + settings.keys
        }
    }
}

/// Settings of a token store in PostgreSQL, which many proxies may share.
public struct PostgresSettings: Sendable, Equatable {
    /// Connection string for libpq.
    public var connection: SecretSource
    /// Name that separates several installations in the same database.
    public var space = "default"
    /// Keys, at least one. The first key encrypts. All keys can decrypt.
    public var keys: [SecretSource]
}
