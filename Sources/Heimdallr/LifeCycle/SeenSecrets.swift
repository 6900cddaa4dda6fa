/// Secrets recently exchanged with the server, which it may repeat in error messages.
struct SeenSecrets: Sendable {
    private(set) var secrets: [Secret] = []
    /// Number of secrets kept. The oldest is dropped first.
    private static let limit = 8

    mutating func note(_ secret: Secret?) {
        guard let secret, !secrets.contains(secret) else { return }
        if secrets.count == Self.limit { secrets.removeFirst() }
        secrets.append(secret)
    }

    mutating func forget() { secrets = [] }
}
