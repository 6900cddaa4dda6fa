/// Where the certificates of intercepted hosts are kept, so that programs go on trusting them after a restart.
public struct InterceptionSettings: Sendable, Equatable {
    public var directory: String
    /// Seals the keys of the certificates.
    public var key: SecretSource
}

extension Section {
    /// - Returns: `nil` when a key is missing or wrong.
    func interceptionSettings() -> InterceptionSettings? {
        defer { finish() }
        let directory = value("directory", Grammar.path).map(diagnostics.resolve)
        let key = secret("key")
        guard has("directory"), has("key") else {
            diagnostics.error(position, "\(path): write `directory` and `key`, or leave `interception` out")
            return nil
        }
        guard let directory, let key else { return nil }
        checkStoreKey(key)
        return InterceptionSettings(directory: directory, key: key)
    }
}
