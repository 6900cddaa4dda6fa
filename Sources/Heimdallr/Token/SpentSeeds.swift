internal import Cryptography
internal import WireText

/// Digests of the configured refresh tokens that have ended, because the server replaced or refused them. None of them
/// is sent again: a server may take a second use for theft, and revoke the successors (RFC 9700 section 4.14.2). The
/// newest eight are kept.
package struct SpentSeeds: Sendable, Equatable {
    private var digests: [Substring] = []

    private static let limit = 8

    package init() {}

    /// - Parameter text: the value of `text`.
    init(text: String) { for digest in text.split(separator: " ") { add(digest) } }

    var text: String { digests.joined(separator: " ") }

    package var isEmpty: Bool { digests.isEmpty }

    func contains(_ seed: Secret) -> Bool { Self.digest(seed).map(digests.contains) ?? false }

    mutating func note(_ seed: Secret) { if let digest = Self.digest(seed) { add(digest) } }

    /// Adds what another record of the client knows.
    package mutating func merge(_ other: SpentSeeds) { for digest in other.digests { add(digest) } }

    private mutating func add(_ digest: Substring) {
        guard !digests.contains(digest) else { return }
        digests = digests.suffix(Self.limit - 1) + [digest]
    }

    private static func digest(_ seed: Secret) -> Substring? {
        (try? Digest.sha256(seed.withoutSpaceAround.bytes)).map { Base64.encode($0, alphabet: .url)[...] }
    }
}
