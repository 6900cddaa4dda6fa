import Foundation

/// Keys made by another library, which also verifies signatures.
public enum ForeignKeys {
    /// - Parameters:
    ///   - kind: `rsa2048`, `rsa1024`, `p256`, `p384`, `p521`, `secp256k1` or `ed25519`.
    ///   - form: `pem` (PKCS#8), `traditional`, `encrypted`, `public` or `jwk`.
    public static func make(_ kind: String, _ form: String = "pem") async throws -> String {
        try await run(["make", kind, form])
    }

    /// The thumbprint of a key (RFC 7638).
    public static func thumbprint(_ key: String) async throws -> String {
        try await run(["thumbprint", key]).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The public half, as a JWK.
    public static func publicJWK(_ key: String) async throws -> String { try await run(["public", key]) }

    /// Returns header and claims of a token with a valid signature.
    /// - Parameter key: PEM, JWK or a shared secret.
    /// - Throws: `TestFailure` with the library's objection.
    public static func verify(
        _ token: String, key: String, algorithm: String
    ) async throws -> (header: [String: Any], claims: [String: Any]) {
        let order = ["token": token, "key": key, "algorithms": [algorithm]] as [String: Any]
        let text = String(decoding: try JSONSerialization.data(withJSONObject: order), as: UTF8.self)
        let answer = try JSONSerialization.jsonObject(with: Data(try await run(["verify", text]).utf8))
        guard let answer = answer as? [String: [String: Any]], let header = answer["header"],
            let claims = answer["claims"]
        else { throw TestFailure("no answer: \(answer)") }
        return (header, claims)
    }

    private static func run(_ arguments: [String]) async throws -> String {
        try await ChildProcess.output(of: [try Repository.python(), Repository.fixture("keys.py")] + arguments)
    }
}
