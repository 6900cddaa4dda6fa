import Cryptography
import WireText

/// Names in the database's notifications. A client appears as a digest, because every user of the database may listen.
package struct ChangeNames: Sendable {
    /// Notification channel of the space.
    package let channel: String
    private let space: String
    /// Random identifier of this process in its notifications. The process ignores notifications with this identifier.
    private let origin: String

    package init(space: String) {
        self.space = space
        channel = "heimdallr_" + Self.text(Self.digest("space", space))
        origin = String(UInt64.random(in: .min ... .max), radix: 16)
    }

    package func digest(of client: String) -> String { Self.text(Self.digest("client", space, client)) }

    package func text(for client: String) -> String { "\(digest(of: client)) \(origin)" }

    /// Returns the client's digest from a notification; `nil` for a notification of this process.
    package func digest(in text: String) -> String? {
        let words = text.split(separator: " ")
        guard let digest = words.first, words.count < 2 || words[1] != origin else { return nil }
        return String(digest)
    }

    /// Returns the database's key for a pending login: a digest, so that the database never sees the login's key.
    package func pending(_ key: String) -> [UInt8] { Self.digest("pending", space, key) }

    /// Returns the SHA-256 of the words, each preceded by its length.
    private static func digest(_ words: String...) -> [UInt8] {
        var input: [UInt8] = []
        for word in words {
            input += UInt32(truncatingIfNeeded: word.utf8.count).bigEndianBytes
            input += Array(word.utf8)
        }
        return (try? Digest.sha256(input)) ?? []
    }

    private static func text(_ digest: [UInt8]) -> String {
        String(decoding: digest.prefix(16).hexadecimal, as: UTF8.self)
    }
}
