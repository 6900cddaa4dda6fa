internal import Cryptography
internal import WireText

/// Signs JSON Web Tokens: RFC 7519, in the compact form of RFC 7515 section 7.1.
enum SignedJWT {
    enum Signer {
        case key(SigningKey, SigningAlgorithm)
        /// HS256, with the bytes of a shared secret (OpenID Connect Core section 9).
        case secret(Secret)

        var algorithm: String {
            switch self {
            case .key(_, let algorithm): algorithm.rawValue
            case .secret: "HS256"
            }
        }
    }

    /// - Parameters:
    ///   - header: header members in this order, after `alg`.
    ///   - claims: claims in this order.
    static func sign(
        header: [JSON.Member], claims: [JSON.Member], with signer: Signer
    ) throws(CryptographyError) -> Secret {
        let header = [JSON.Member("alg", .string(signer.algorithm))] + header
        var message = encoded(header)
        message.append(ASCII.dot)
        message += encoded(claims)
        let signature: [UInt8]
        switch signer {
        case .key(let key, let algorithm): signature = try key.sign(message, by: algorithm)
        case .secret(let secret): signature = try Digest.hmacSHA256(message, key: secret.bytes)
        }
        var token = SecretWriter(capacity: message.count + 1 + signature.count * 2)
        token.append(message.span)
        token.append(ASCII.dot)
        token.append(Base64.encode(SecretBytes(signature), alphabet: .url))
        return Secret(token.finish())
    }

    private static func encoded(_ members: [JSON.Member]) -> [UInt8] {
        var json: [UInt8] = []
        JSON.object(members).write(.compact, escaping: .required) { json.append($0) }
        return Array(Base64.encode(json, alphabet: .url).utf8)
    }
}
