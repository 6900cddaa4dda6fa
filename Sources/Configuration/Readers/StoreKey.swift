import WireText

/// The key of `store`.
extension Section {
    /// Reports an invalid key with its position now, not only when the store is opened.
    func checkStoreKey(_ source: SecretSource, _ name: String = "key") {
        let text: [UInt8]
        switch source {
        case .literal(let literal): text = Array(literal.utf8)
        case .environment(let name): text = Array((diagnostics.environment[name] ?? "").utf8)
        case .file(let path):
            // An unreadable file was reported before.
            guard let content = try? Files.read(path, limit: 64 * 1024) else { return }
            text = content
        // Checking a configuration runs no commands.
        case .command: return
        }
        guard !StoreKey.isGood(text) else { return }
        error(
            name,
            "this key is no key of 32 bytes, raw or base64: make one with `heimdallr-proxy keygen --output FILE`")
    }
}

enum StoreKey {
    /// 32 raw bytes, or base64 of 32 bytes with white space around it: 43 digits and an optional `=`.
    static func isGood(_ text: [UInt8]) -> Bool {
        guard text.count != 32 else { return true }
        // Counts the bytes without leaving a copy of the key.
        var count = 0
        return Base64.decode(text.span.trimmed, as: .either) { _ in count += 1 } && count == 32
    }
}
