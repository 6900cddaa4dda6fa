import WireText

extension Base64 {
    /// Leaves no copy of the secret, nor of what it makes of it.
    public static func encode(_ secret: SecretBytes, alphabet: Alphabet = .standard) -> SecretBytes {
        var output = SecretWriter(capacity: (secret.count + 2) / 3 * 4)
        secret.withSpan { bytes in encode(bytes, alphabet) { output.append($0) } }
        return output.finish()
    }
}
