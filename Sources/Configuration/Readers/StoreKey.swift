import WireText

/// A key of the token store.
enum StoreKey {
    /// 32 raw bytes, or base64 of 32 bytes with white space around it: 43 digits and an optional `=`.
    static func isGood(_ text: [UInt8]) -> Bool {
        guard text.count != 32 else { return true }
        // Counts the bytes without leaving a copy of the key.
        var count = 0
        return Base64.decode(text.span.trimmed, as: .either) { _ in count += 1 } && count == 32
    }
}
