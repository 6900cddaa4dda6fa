internal import Cryptography
internal import WireText

/// An issuer's public keys: RFC 7517 section 5. Keys of unknown kinds are omitted.
struct KeySet: Sendable {
    struct Key: Sendable {
        var identifier: String?
        /// The only algorithm for which the key may be used; `nil`: any.
        var algorithm: SignatureAlgorithm?
        var key: VerificationKey
    }

    var keys: [Key] = []

    /// Largest number of keys. Further keys are ignored, because each costs time.
    static let maxKeys = 64

    /// - Throws: `DiscoveryFault.malformed`
    init(_ body: [UInt8]) throws(DiscoveryFault) {
        guard let value = try? JSONParser.parse(body), case .array(let entries) = value["keys"] else {
            throw .malformed
        }
        keys = entries.prefix(Self.maxKeys).compactMap(Self.key)
    }

    /// Returns the keys for the token's algorithm; if the token has a `kid`, only the keys with this `kid` or without any.
    func candidates(for token: SignedToken) -> [VerificationKey] {
        keys.filter { key in
            guard key.key.kind == token.algorithm.keyKind else { return false }
            if let only = key.algorithm, only != token.algorithm { return false }
            return token.keyID == nil || key.identifier == nil || key.identifier == token.keyID
        }.map(\.key)
    }

    private static func key(_ entry: JSONValue) -> Key? {
        let entry = entry.withoutNulls
        if let use = entry["use"], use != .string("sig") { return nil }
        if case .array(let operations) = entry["key_ops"], !operations.contains(.string("verify")) { return nil }
        var only: SignatureAlgorithm?
        if let name = entry["alg"]?.string {
            guard let algorithm = SignedToken.algorithm(name) else { return nil }
            only = algorithm
        }
        guard let key = try? material(entry) else { return nil }
        return Key(identifier: entry["kid"]?.string, algorithm: only, key: key)
    }

    private static func material(_ entry: JSONValue) throws(CryptographyError) -> VerificationKey? {
        func number(_ name: String) -> [UInt8]? { entry[name]?.string.flatMap { SignedToken.bytes($0.utf8) } }
        switch (entry["kty"]?.string, entry["crv"]?.string) {
        case ("RSA", _):
            guard let modulus = number("n"), let exponent = number("e") else { return nil }
            return try VerificationKey(modulus: modulus, exponent: exponent)
        case ("EC", let name):
            guard let curve = name.flatMap({ EllipticCurve(rawValue: $0) }), let x = number("x"), let y = number("y")
            else { return nil }
            return try VerificationKey(curve, x: x, y: y)
        case ("OKP", "Ed25519"):
            return try number("x").map { bytes throws(CryptographyError) in try VerificationKey(ed25519: bytes) }
        default: return nil
        }
    }
}
