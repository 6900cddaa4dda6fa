import Cryptography

/// A file of trusted certificates in Java's format JKS. The JDK reads it with or without the password
/// (documentation of `javax.net.ssl.trustStore`).
enum JavaTrustStore {
    private static let password = "changeit"

    static func bytes(_ certificates: [[UInt8]]) throws(CryptographyError) -> [UInt8] {
        var body = number(0xFEED_FEED) + number(2) + number(UInt32(clamping: certificates.count))
        for (index, certificate) in certificates.enumerated() {
            // An entry begins with the tag of a trusted certificate, an alias, a date in two numbers, and a type.
            body += number(2) + text("\(index)") + number(0) + number(0) + text("X.509")
            body += number(UInt32(clamping: certificate.count)) + certificate
        }
        let key = password.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        return body + (try Digest.sha1(key + Array("Mighty Aphrodite".utf8) + body))
    }

    private static func number(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32($0))) }
    }

    /// Returns ASCII text after its length in two bytes.
    private static func text(_ value: String) -> [UInt8] {
        let bytes = Array(value.utf8.prefix(0xFFFF))
        return [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }
}
