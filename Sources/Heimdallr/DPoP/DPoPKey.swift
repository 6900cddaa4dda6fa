internal import Cryptography
internal import WireText

/// A key that tokens are bound to, and its proofs: RFC 9449. Immutable. Wiped with its last user. Prints as `<redacted>`.
public final class DPoPKey: Sendable, Redacted {
    let key: SigningKey
    let algorithm: SigningAlgorithm
    private let header: [JSON.Member]

    init(_ key: SigningKey, _ algorithm: SigningAlgorithm) {
        self.key = key
        self.algorithm = algorithm
        header = [.init("typ", "dpop+jwt"), .init("jwk", .object(key.publicKey.members))]
    }

    /// From what a record holds.
    /// - Throws: `CryptographyError.key`
    convenience init(exported: Secret) throws(CryptographyError) {
        let key = try SigningKey(exported: exported.bytes)
        self.init(key, try key.algorithm())
    }

    /// The key itself, for a record. An algorithm that is not the usual one of the key's kind is not kept with it.
    func exported() throws(CryptographyError) -> Secret { Secret(try key.exported()) }

    /// The key's thumbprint (RFC 7638), by which servers know it: `jkt`.
    func thumbprint() throws(SecretProviderError) -> String {
        do { return try key.publicKey.thumbprint() } catch { throw SecretProviderError("\(error)") }
    }

    /// A proof for one request (RFC 9449 section 4.2). Takes some 30 µs with a P-256 key.
    /// - Parameters:
    ///   - method: of the request.
    ///   - url: its whole address; query and fragment are left out.
    ///   - token: the access token on the request; `nil` at the token endpoint.
    ///   - nonce: the newest that this server has given.
    ///   - now: seconds since 1970; `nil`: by the machine's clock.
    /// - Throws: `SecretProviderError` when there is no randomness, or no memory.
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

/// A nonce of RFC 9449 section 8.1: bytes from a server, to be repeated in the next proof.
public enum DPoPNonce {
    /// The name of the field that brings one, in lower case.
    public static let field = "dpop-nonce"
    /// The error that asks for one (sections 8 and 9).
    public static let error = "use_dpop_nonce"
    /// A longer one is not kept.
    static let maxLength = 512

    /// The nonce, if the field's value is one: NQCHAR, some hundred of them at most.
    public static func read(_ value: Span<UInt8>) -> String? {
        guard value.count > 0, value.count <= maxLength else { return nil }
        for index in value.indices {
            let byte = value[index]
            guard byte == 0x21 || (0x23...0x7E).contains(byte), byte != ASCII.backslash else { return nil }
        }
        return value.text
    }
}
