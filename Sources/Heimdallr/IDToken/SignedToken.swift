internal import Cryptography
internal import WireText

/// The parts of a JSON Web Token in compact form: RFC 7515 section 7.1. The signature is not verified yet.
struct SignedToken: Sendable {
    var algorithm: SignatureAlgorithm
    /// Identifier of the signing key (`kid`), if the token has one.
    var keyID: String?
    var payload: JSONValue
    var signature: [UInt8]
    /// The signed bytes.
    var message: [UInt8]

    static let maxBytes = 64 * 1024

    /// Parses a token. Ignores `jku`, `x5u`, `jwk` and `x5c`, because a token must not choose the source of its keys.
    init(_ text: [UInt8]) throws(IDTokenFault) {
        guard text.count <= Self.maxBytes else { throw .malformed }
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.json(parts[0]), case .object = header else { throw .malformed }
        guard let name = header["alg"]?.string else { throw .malformed }
        guard let algorithm = Self.algorithm(name) else { throw .algorithm(ForeignText.printable(name)) }
        // `crit` and `b64` announce extensions that must be understood (section 4.1.11). No extension is supported.
        guard header["crit"] == nil, header["b64"] == nil else { throw .malformed }
        guard let payload = Self.json(parts[1]), case .object = payload, let signature = Self.bytes(parts[2]),
            !signature.isEmpty
        else { throw .malformed }
        switch header["kid"] {
        case nil, .null?: keyID = nil
        case .string(let identifier): keyID = identifier
        default: throw .malformed
        }
        self.algorithm = algorithm
        self.payload = payload
        self.signature = signature
        message = Array(text[..<(text.count - parts[2].count - 1)])
    }

    /// Returns the algorithm if it is asymmetric. Others, such as HS256 and `none`, would not prove the issuer.
    static func algorithm(_ name: String) -> SignatureAlgorithm? {
        switch name {
        case "RS256": .rsa(.sha256)
        case "RS384": .rsa(.sha384)
        case "RS512": .rsa(.sha512)
        case "PS256": .rsaPSS(.sha256)
        case "PS384": .rsaPSS(.sha384)
        case "PS512": .rsaPSS(.sha512)
        case "ES256": .ecdsa(.p256)
        case "ES384": .ecdsa(.p384)
        case "ES512": .ecdsa(.p521)
        case "EdDSA", "Ed25519": .ed25519
        default: nil
        }
    }

    private static func json(_ text: ArraySlice<UInt8>) -> JSONValue? {
        bytes(text).flatMap { try? JSONParser.parse($0) }
    }

    /// Decodes base64url without padding. Refuses any other spelling of the same bytes.
    static func bytes(_ text: some Sequence<UInt8>) -> [UInt8]? { Base64.decode(Array(text), as: .url) }
}
