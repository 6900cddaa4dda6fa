/// Secrets that the server has seen lately, and may repeat in its messages even after they have ended.
struct Echoes: Sendable {
    private(set) var secrets: [Secret] = []
    /// Of tokens that are rotated or refused; older ones are let go.
    private static let limit = 8

    mutating func note(_ secret: Secret?) {
        guard let secret, !secrets.contains(secret) else { return }
        if secrets.count == Self.limit { secrets.removeFirst() }
        secrets.append(secret)
    }

    mutating func forget() { secrets = [] }
}
