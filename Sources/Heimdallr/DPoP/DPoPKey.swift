internal import Cryptography
internal import WireText

/// A key that tokens are bound to (RFC 9449). Immutable. Wiped with its last reference. Prints as `<redacted>`.
public final class DPoPKey: Sendable, Redacted {
    let key: SigningKey
    let algorithm: SigningAlgorithm
    private let header: [JSON.Member]

    init(_ key: SigningKey, _ algorithm: SigningAlgorithm) {
        self.key = key
        self.algorithm = algorithm
        header = [.init("typ", "dpop+jwt"), .init("jwk", .object(key.publicKey.members))]
    }

    /// Makes a key from the text in a record.
    /// - Throws: `CryptographyError.key`
    convenience init(exported: Secret) throws(CryptographyError) {
        let key = try SigningKey(exported: exported.bytes)
        self.init(key, try key.algorithm())
    }

    /// Returns the private key for a record. The algorithm is not stored: a stored key always uses its usual algorithm.
    func exported() throws(CryptographyError) -> Secret { Secret(try key.exported()) }

    /// Returns the key's thumbprint (RFC 7638), which servers use as `jkt`.
    func thumbprint() throws(SecretProviderError) -> String {
        do { return try key.publicKey.thumbprint() } catch { throw SecretProviderError("\(error)") }
    }

    /// Returns a proof for one request (RFC 9449 section 4.2). Takes some 30 µs with a P-256 key.
    /// - Parameters:
    ///   - method: the request's method.
    ///   - url: the request's URL. Its query and fragment are not used.
    ///   - token: the access token on the request; `nil` at the token endpoint.
    ///   - nonce: the newest nonce of this server.
    ///   - now: seconds since 1970; `nil`: the machine's clock.
    /// - Throws: `SecretProviderError` if there is no randomness or no memory.
    public func proof(
        method: String, url: String, token: AccessToken?, nonce: String?, now: Int64? = nil
    ) throws(SecretProviderError) -> Secret {
        do throws(CryptographyError) {
            var claims: [JSON.Member] = [
                .init("jti", .string(Base64.encode(try RandomBytes.make(16), alphabet: .url))),
                .init("htm", .string(method)), .init("htu", .string(Self.target(url))),
                .init("iat", .number(Int(now ?? WallClock.now()))),
            ]
            if let token {
                let digest = try Digest.sha256(token.value.bytes)
                claims.append(.init("ath", .string(Base64.encode(digest, alphabet: .url))))
            }
            if let nonce { claims.append(.init("nonce", .string(nonce))) }
            return try SignedJWT.sign(header: header, claims: claims, with: .key(key, algorithm))
        } catch {
            throw SecretProviderError("a DPoP proof can't be made: \(error)")
        }
    }

    static func target(_ url: String) -> String { String(url.prefix { $0 != "?" && $0 != "#" }) }
}

/// A nonce (RFC 9449 section 8.1): a text of the server that the next proof must contain.
public enum DPoPNonce {
    /// Name of the header field with a nonce, in lower case.
    public static let field = "dpop-nonce"
    /// Error code with which a server requires a nonce (sections 8 and 9).
    public static let error = "use_dpop_nonce"
    /// Longest accepted nonce, in bytes.
    static let maxLength = 512

    /// Returns the nonce if the field's value is valid: 1 to `maxLength` bytes of NQCHAR.
    public static func read(_ value: Span<UInt8>) -> String? {
        guard value.count > 0, value.count <= maxLength else { return nil }
        for index in value.indices {
            let byte = value[index]
            guard byte == 0x21 || (0x23...0x7E).contains(byte), byte != ASCII.backslash else { return nil }
        }
        return value.text
    }
}
