/// Secrets that the server has seen lately and may repeat in its messages.
struct SeenSecrets: Sendable {
    private(set) var secrets: [Secret] = []
    /// Number of the newest secrets that are kept.
    private static let limit = 8

    mutating func note(_ secret: Secret?) {
        guard let secret, !secrets.contains(secret) else { return }
        if secrets.count == Self.limit { secrets.removeFirst() }
        secrets.append(secret)
    }

    mutating func forget() { secrets = [] }
}
