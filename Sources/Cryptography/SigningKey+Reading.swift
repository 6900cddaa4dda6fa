import CLibcrypto
import WireText

// Readers for the file formats of keys.
extension SigningKey {
    /// Reads PEM (PKCS#8, PKCS#1 or SEC1, without a passphrase) or a JWK (RFC 7517). Takes a millisecond or two.
    /// - Throws: `CryptographyError.key`, which reveals nothing of the key.
    public convenience init(text: SecretBytes) throws(CryptographyError) {
        if text.withSpan({ !$0.trimmed.isEmpty && $0.trimmed[0] == ASCII.leftBrace }) {
            let key = try JWKReader(text)
            try unsafe self.init(
                owning: Self.key(exported: key.encoded), identifier: key.identifier, statedAlgorithm: key.algorithm)
        } else {
            try unsafe self.init(owning: Self.key(pem: text))
        }
    }

    /// Reads the result of `exported()`.
    public convenience init(exported: SecretBytes) throws(CryptographyError) {
        try unsafe self.init(owning: Self.key(exported: exported))
    }

    /// Returns the private key as DER, to be sealed. i2d_PrivateKey(3).
    public func exported() throws(CryptographyError) -> SecretBytes {
        let size = unsafe i2d_PrivateKey(key, nil)
        guard size > 0 else {
            try Libcrypto.check("i2d_PrivateKey", 0)
            return SecretBytes([])
        }
        return try unsafe SecretBytes(count: Int(size)) { output throws(CryptographyError) in
            var position = output.baseAddress
            try Libcrypto.check("i2d_PrivateKey", unsafe i2d_PrivateKey(key, &position) == size ? 1 : 0)
        }
    }

    /// d2i_AutoPrivateKey(3)
    private static func key(exported: SecretBytes) throws(CryptographyError) -> OpaquePointer {
        let parsed = unsafe exported.withUnsafeBytes { bytes in
            var position = unsafe bytes.bindMemory(to: UInt8.self).baseAddress
            return unsafe d2i_AutoPrivateKey(nil, &position, bytes.count)
        }
        Libcrypto.forgetErrors()
        guard let parsed = unsafe parsed else { throw .key(.notAKey) }
        return unsafe parsed
    }

    /// PEM_read_bio_PrivateKey(3)
    private static func key(pem: SecretBytes) throws(CryptographyError) -> OpaquePointer {
        let parsed = unsafe pem.withBIO(or: nil) { unsafe PEM_read_bio_PrivateKey($0, nil, refusePassphrase, nil) }
        Libcrypto.forgetErrors()
        if let parsed = unsafe parsed { return unsafe parsed }
        func has(_ words: String) -> Bool { pem.withSpan { $0.contains(Array(words.utf8)) } }
        if has("ENCRYPTED") { throw .key(.encrypted) }
        if has("BEGIN CERTIFICATE") { throw .key(.certificate) }
        if has("BEGIN PUBLIC KEY") || has("BEGIN RSA PUBLIC KEY") { throw .key(.publicOnly) }
        throw .key(.notAKey)
    }
}

extension Span where Element == UInt8 {
    fileprivate func contains(_ words: [UInt8]) -> Bool {
        guard count >= words.count else { return false }
        return (0...(count - words.count)).contains { extracting($0..<($0 + words.count)).elementsEqual(words) }
    }
}

/// Converts a private JWK to PKCS#8 (RFC 5208) without leaving a copy of its secret members.
private struct JWKReader {
    var identifier: String?
    var algorithm: String?
    var encoded = SecretBytes([])

    private let text: SecretBytes
    private let members: [String: JSONParser.Member]

    init(_ text: SecretBytes) throws(CryptographyError) {
        self.text = text
        guard let members = text.withSpan({ try? JSONParser.members($0) }) else { throw .key(.notAKey) }
        self.members = members
        identifier = plain("kid")
        algorithm = plain("alg")
        if members["use"] != nil, plain("use") != "sig" { throw .key(.notForSigning) }
        if let operations = members["key_ops"] {
            let value = text.withSpan { span -> JSONValue? in
                var object = [ASCII.leftBrace]
                object.append(copying: span.extracting(operations.source))
                object.append(ASCII.rightBrace)
                return (try? JSONParser.parse(object))?["key_ops"]
            }
            guard case .array(let names) = value, names.contains(.string("sign")) else { throw .key(.notForSigning) }
        }
        encoded = try key()
    }

    private func key() throws(CryptographyError) -> SecretBytes {
        guard let type = plain("kty") else { throw .key(.notAKey) }
        guard ["RSA", "EC", "OKP"].contains(type) else { throw .key(.kind) }
        guard members["d"] != nil else { throw .key(.publicOnly) }
        switch (type, plain("crv")) {
        case ("RSA", _):
            // RSAPrivateKey of RFC 8017 appendix A.1.2.
            var numbers = [SecretDER.integer(SecretDER.plain([0]))]
            for name in ["n", "e", "d", "p", "q", "dp", "dq", "qi"] {
                numbers.append(SecretDER.integer(try bytes(name)))
            }
            return wrapped(.rsa, SecretDER.sequence(numbers))
        case ("EC", let name?):
            guard let curve = EllipticCurve(rawValue: name), curve != .p521 else { throw .key(.kind) }
            return try elliptic(curve)
        case ("OKP", "Ed25519"):
            let seed = try bytes("d", size: 32)
            let key = wrapped(.ed25519, SecretDER.octets(seed))
            // libcrypto derives the key from `d` alone. `x` is compared with the derived public key.
            let made = try SigningKey(exported: key)
            guard made.publicKey.members.last?.value == JSON(plain("x")) else { throw .key(.inconsistent) }
            return key
        default: throw .key(.kind)
        }
    }

    /// ECPrivateKey of RFC 5915.
    private func elliptic(_ curve: EllipticCurve) throws(CryptographyError) -> SecretBytes {
        let x = try bytes("x", size: curve.size)
        let y = try bytes("y", size: curve.size)
        let point = SecretDER.element(0x03, [SecretDER.plain([0x00, 0x04]), x, y])
        let key = SecretDER.sequence([
            SecretDER.integer(SecretDER.plain([1])), SecretDER.octets(try bytes("d", size: curve.size)),
            SecretDER.element(0xA1, [point]),
        ])
        return wrapped(.elliptic(curve), key)
    }

    private func wrapped(_ kind: VerificationKey.Kind, _ key: SecretBytes) -> SecretBytes {
        SecretDER.sequence([
            SecretDER.integer(SecretDER.plain([0])), SecretDER.plain(kind.algorithm), SecretDER.octets(key),
        ])
    }

    private func plain(_ name: String) -> String? {
        guard case .string(let range) = members[name]?.value else { return nil }
        var characters: [UInt8] = []
        text.withSpan { span in JSONParser.decode(string: range, in: span) { characters.append(copying: $0) } }
        return String(decoding: characters, as: UTF8.self)
    }

    private func bytes(_ name: String, size: Int? = nil) throws(CryptographyError) -> SecretBytes {
        guard let digits = text.withSpan({ members[name]?.secretBytes(in: $0) }), digits.count <= 4096 else {
            throw .key(.notAKey)
        }
        var output = SecretWriter(capacity: digits.count + 1)
        let isGood = digits.withSpan { Base64.decode($0, as: .either) { output.append($0) } }
        guard isGood, output.count > 0, size == nil || output.count == size else { throw .key(.notAKey) }
        return output.finish()
    }
}
