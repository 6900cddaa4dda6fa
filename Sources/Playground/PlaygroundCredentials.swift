import Cryptography

/// The only OAuth client and the only user of the playground. The secrets have 256 random bits each and are new in
/// every process. They print as `<redacted>`.
public struct PlaygroundCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    public let clientID: String
    public let clientSecret: String
    /// Name for the password grant, which also issues a refresh token.
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
    /// Returns 256 bits from the system's random source, as 43 characters of base64url (RFC 4648, section 5).
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
