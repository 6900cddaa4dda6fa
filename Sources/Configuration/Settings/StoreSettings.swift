/// Where tokens are kept.
public enum StoreSettings: Sendable, Equatable {
    case memory
    case file(directory: String, key: SecretSource)
}
