internal import Cryptography
internal import WireText

/// Name of a client's record: the client's name and a digest of server, `client_id` and account. So a refresh token
/// never reaches another server or client (RFC 6749 section 10.4). Records of former settings stay in the store.
public struct RecordName: Sendable, Hashable, CustomStringConvertible {
    /// The name in the store: `NAME-DIGEST`, with 16 lower-case hexadecimal digits.
    public let description: String

    /// - Parameters:
    ///   - client: the client's name.
    ///   - configuration: the digest covers `enrolment.resource`, or else the token endpoint, or else the issuer.
    ///   - credentials: the digest covers their `client_id`.
    ///   - grant: the digest covers its account.
    public init(
        client: String, configuration: HeimdallrConfiguration, credentials: any OAuthClientCredentials,
        grant: any OAuthAuthorizationGrant
    ) {
        let server = configuration.enrolment?.resource ?? configuration.tokenEndpoint ?? configuration.issuer ?? ""
        let parts = [server, credentials.identifier, grant.account]
        // Each part follows its length, so that different parts never give the same bytes.
        let bytes = parts.flatMap { Array("\($0.utf8.count) ".utf8) + Array($0.utf8) }
        // If SHA-256 fails, sealing fails too, and no record is saved.
        let digest = (try? Digest.sha256(bytes)) ?? [UInt8](repeating: 0, count: 32)
        description = "\(client)-\(String(decoding: digest.prefix(8).hexadecimal, as: UTF8.self))"
    }

    /// Returns the client's name from a record's name; `nil` for a name without a digest.
    public static func client(of name: String) -> String? {
        let (client, digits) = (name.dropLast(17), name.suffix(16))
        guard !client.isEmpty, name.dropLast(16).last == "-", digits.utf8.allSatisfy("0123456789abcdef".utf8.contains)
        else { return nil }
        return String(client)
    }

    /// Returns the client's name for a message about a record; the record's own name if it has no digest.
    package static func owner(of name: String) -> String { client(of: name) ?? name }
}
