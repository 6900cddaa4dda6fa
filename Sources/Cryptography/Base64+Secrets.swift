import WireText

extension Base64 {
    /// Encodes a secret without leaving a copy of it or of the result.
    public static func encode(_ secret: SecretBytes, alphabet: Alphabet = .standard) -> SecretBytes {
        var output = SecretWriter(capacity: (secret.count + 2) / 3 * 4)
        secret.withSpan { bytes in encode(bytes, alphabet) { output.append($0) } }
        return output.finish()
    }
}
