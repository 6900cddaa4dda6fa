extension Section {
    func storeSettings() -> StoreSettings {
        defer { finish() }
        let kind: StoreKind? = value("kind", Grammar.word)
        let directory = value("directory", Grammar.path).map(diagnostics.resolve)
        let key = secret("key")
        let keys = secrets("keys")
        let connection = secret("connection")
        let space = value("space", Self.space)
        tell("space", usually: "default")
        need("kind", saying: "\(path): write `kind: memory`, `kind: file` or `kind: postgres`")
        guard let kind else { return .memory }
        for (name, owners) in Self.storeKeys where has(name) && !owners.contains(kind) {
            error(
                name,
                "this belongs to \(owners.map { "`kind: \($0.rawValue)`" }.joined(separator: " and ")): leave it out")
        }
        switch kind {
        case .memory: return .memory
        case .file:
            guard has("directory"), has("key") else {
                diagnostics.error(position, "\(path): `kind: file` needs `directory` and `key`")
                return .memory
            }
            guard let directory, let key else { return .memory }
            checkStoreKey(key)
            return .file(directory: directory, key: key)
        case .postgres:
            guard has("connection"), has("key") != has("keys") else {
                diagnostics.error(
                    position,
                    "\(path): `kind: postgres` needs `connection`, and either `key` or, while keys change, `keys: [NEW, OLD]`"
                )
                return .memory
            }
            guard let connection, let keys = key.map({ [$0] }) ?? keys else { return .memory }
            for source in keys { checkStoreKey(source, "key\(has("keys") ? "s" : "")") }
            var settings = PostgresSettings(connection: connection, keys: keys)
            if let space { settings.space = space }
            return .postgres(settings)
        }
    }

    private enum StoreKind: String, CaseIterable { case memory, file, postgres }

    private static let storeKeys: [(String, [StoreKind])] = [
        ("directory", [.file]), ("key", [.file, .postgres]), ("keys", [.postgres]), ("connection", [.postgres]),
        ("space", [.postgres]),
    ]

    private static func space(_ text: String) throws(BadValue) -> String {
        try Grammar.checked(
            text, (1...80).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F },
            BadValue("write a name of 1 to 80 characters without spaces"))
    }

    /// Reads a list of 1 to 16 secrets.
    private func secrets(_ key: String) -> [SecretSource]? {
        tell(key, .list(Self.secretShape, 1...16))
        guard let node = node(key) else { return nil }
        guard case .sequence(let elements) = node.content, (1...16).contains(elements.count) else {
            error(key, "write a list of 1 to 16 secrets, [{file: PATH}, {file: PATH}], the new key first")
            return nil
        }
        let found = elements.compactMap { secret(key, of: $0) }
        return found.count == elements.count ? found : nil
    }
}
