internal import Cryptography
internal import WireText

/// Name of a client's record: the client's name and a digest of server and account, because a refresh token must not reach
/// another server or client (RFC 6749 section 10.4). The record of former settings stays.
public struct RecordName: Sendable, Hashable, CustomStringConvertible {
    /// The name in the store: `NAME-DIGEST`, with 16 lower-case hexadecimal digits.
    public let description: String

    /// - Parameters:
    ///   - client: the client's name.
    ///   - configuration: the name depends on `enrolment.resource`, else on the token endpoint, else on the issuer.
    ///   - credentials: their `client_id` counts.
    ///   - grant: its account counts.
    public init(
        client: String, configuration: HeimdallrConfiguration, credentials: any OAuthClientCredentials,
        grant: any OAuthAuthorizationGrant
    ) {
        let server = configuration.enrolment?.resource ?? configuration.tokenEndpoint ?? configuration.issuer ?? ""
        let parts = [server, credentials.identifier, grant.account]
        // The length in front: no two lists have the same bytes.
        let bytes = parts.flatMap { Array("\($0.utf8.count) ".utf8) + Array($0.utf8) }
        // Where SHA-256 fails, sealing fails, too, and nothing is kept under any name.
        let digest = (try? Digest.sha256(bytes)) ?? [UInt8](repeating: 0, count: 32)
        description = "\(client)-\(String(decoding: digest.prefix(8).hexadecimal, as: UTF8.self))"
    }

    /// The client's name in a record's name; `nil` for a name without a digest.
    public static func client(of name: String) -> String? {
        let (client, digits) = (name.dropLast(17), name.suffix(16))
        guard !client.isEmpty, name.dropLast(16).last == "-", digits.utf8.allSatisfy("0123456789abcdef".utf8.contains)
        else { return nil }
        return String(client)
    }
}
