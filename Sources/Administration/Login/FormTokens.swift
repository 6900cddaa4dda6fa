import Cryptography
import Heimdallr
import WireText

/// Tokens against forged forms: each browser has a cookie, and each form an HMAC of it with the key of this process. Another
/// server on this host could set the cookie, but not make the token.
struct FormTokens: Sendable {
    /// The same for all proxies of a host, which share cookies.
    static let cookie = "heimdallr-browser"

    private let key: [UInt8]

    /// The key comes from the kernel: at the start, libcrypto's generator has not been seeded yet.
    init() {
        var generator = SystemRandomNumberGenerator()
        key = (0..<32).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    static func newCookie() throws(CryptographyError) -> String { try RandomBytes.identifier() }

    /// Whether `newCookie` could have made it.
    static func isPlausible(_ cookie: String) -> Bool {
        cookie.utf8.count == 22
            && cookie.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    func token(for cookie: String) -> String? {
        (try? Digest.hmacSHA256(Array(cookie.utf8), key: key)).map { Base64.encode($0, alphabet: .url) }
    }

    func accepts(_ token: String?, for cookie: String?) -> Bool {
        guard let token, let cookie, Self.isPlausible(cookie), let expected = self.token(for: cookie) else {
            return false
        }
        return Secret(token) == Secret(expected)
    }
}
