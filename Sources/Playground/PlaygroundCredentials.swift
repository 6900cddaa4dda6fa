import Cryptography

/// The one OAuth client and the one user of the playground. The secrets are random, 256 bits each, and new in every
/// process. They print as `<redacted>`.
public struct PlaygroundCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    public let clientID: String
    public let clientSecret: String
    /// For the password grant, which also issues a refresh token.
    public let username: String
    public let password: String

    public init() {
        clientID = "playground-client"
        clientSecret = RandomText.make()
        username = "guest"
        password = RandomText.make()
    }

    public var description: String { "client \(clientID), user \(username), secrets <redacted>" }
    public var debugDescription: String { description }
}

/// Unpredictable text.
enum RandomText {
    /// 256 random bits of the system, as 43 characters of base64url (RFC 4648, section 5).
    static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        var text: [UInt8] = []
        text.reserveCapacity(43)
        for _ in 0..<43 { text.append(digits[Int(generator.next() & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
}

extension String {
    func isEqualInConstantTime(to other: String) -> Bool { ConstantTime.isEqual(Array(utf8), Array(other.utf8)) }
}
