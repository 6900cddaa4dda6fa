internal import Cryptography
internal import WireText

/// Parses the body of a successful token response: RFC 6749 section 5.1.
public protocol OAuthAccessTokenParser: Sendable {
    /// Parses a body. Called on any thread, once for each response.
    /// - Throws: `TokenResponseError`, the fault of the response. The client then keeps its tokens.
    func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse
    /// Parses a body that is wiped afterwards. Clients call this; by default it passes a copy to the other `parse`.
    func parse(_ content: Secret) throws(TokenResponseError) -> TokenResponse
}

extension OAuthAccessTokenParser {
    /// Passes a copy, which is not wiped, to the other `parse`.
    /// - Throws: `TokenResponseError`
    public func parse(_ content: Secret) throws(TokenResponseError) -> TokenResponse {
        try parse(content.revealedBytes)
    }
}

/// Parses the JSON of RFC 6749 section 5.1 and its variants at real servers. `expires_in` (or `expires`) may be a number,
/// a fraction or a numeric string. `scope` may be a string or an array. A form counts as an object of strings. Ignores a
/// byte order mark and the content type.
public struct OAuthAccessTokenDefaultParser: OAuthAccessTokenParser {
    private let path: [String]

    /// Makes a parser of answers with `access_token`.
    public init() { path = ["access_token"] }

    /// Makes a parser of answers in which another member holds the token.
    /// - Parameter member: path of the token's member, names with dots between them, such as `authed_user.access_token`.
    ///   The other members are read beside the token.
    public init(member: String) { path = member.split(separator: ".").map(String.init) }

    public func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse { try parse(Secret(body)) }

    public func parse(_ content: Secret) throws(TokenResponseError) -> TokenResponse {
        try AnswerBody.json(of: content).withSpan { span in
            Result { () throws(TokenResponseError) in try Self.parse(span, path[...]) }
        }.get()
    }

    /// - Parameter path: names of the objects around the token's member, and the member's name.
    private static func parse(
        _ body: Span<UInt8>, _ path: ArraySlice<String>
    ) throws(TokenResponseError) -> TokenResponse {
        guard body.indices.contains(where: { body[$0] > 0x20 }) else { throw .emptyBody }
        let found: [String: JSONParser.Member]?
        do { found = try JSONParser.members(body) } catch {
            throw AnswerBody.foreignFormat(of: body).map { .foreign($0) } ?? .notJSON
        }
        guard var members = found else { throw .notAnObject }

        guard let name = path.first, let member = members.removeValue(forKey: name) else { throw .noAccessToken }
        if path.count > 1 {
            guard case .other(let range) = member.value, body[range.lowerBound] == ASCII.leftBrace else {
                throw .noAccessToken
            }
            return try parse(body.extracting(range), path.dropFirst())
        }
        guard let accessToken = member.secret(in: body), !accessToken.isEmpty else { throw .noAccessToken }
        var response = TokenResponse(
            accessToken: accessToken, tokenType: members.removeValue(forKey: "token_type")?.secret(in: body)?.revealed)
        response.expiresIn = members.removeValue(forKey: "expires_in").flatMap { Self.seconds($0, body) }
        if response.expiresIn == nil, let seconds = members["expires"].flatMap({ Self.seconds($0, body) }),
            seconds <= Self.longestExpires
        {
            response.expiresIn = seconds
            members.removeValue(forKey: "expires")
        }
        // A value of another type counts as none, because some servers send `false` or `{}` for none.
        if let token = members.removeValue(forKey: "refresh_token")?.secret(in: body), !token.isEmpty {
            response.refreshToken = token
        }
        // Keycloak uses the second name, and the draft of OAuth refresh token expiration the last two: for a refresh
        // token that is not used, and for the person's consent. The earliest end counts.
        let refreshLives = [
            "refresh_token_expires_in", "refresh_expires_in", "refresh_token_timeout", "authorization_expires_in",
        ].compactMap { members.removeValue(forKey: $0).flatMap { Self.seconds($0, body) } }
        response.refreshTokenExpiresIn = refreshLives.filter { $0 > 0 }.min() ?? refreshLives.first
        if let idToken = members.removeValue(forKey: "id_token")?.secret(in: body), !idToken.isEmpty {
            response.idToken = idToken
        }
        if let scope = members.removeValue(forKey: "scope") { response.scope = Self.scopes(scope, body) }
        response.members = SecretMembers(members.values, of: body)
        return response
    }

    /// Largest `expires` that is a lifetime in seconds. At some servers the member is a time since 1970.
    private static let longestExpires = 1e9

    private static func seconds(_ member: JSONParser.Member, _ body: Span<UInt8>) -> Double? {
        switch member.value {
        case .number(let text): seconds(.number(text))
        case .string: (member.secret(in: body)?.revealed).flatMap { seconds(.string($0)) }
        case .null, .other: nil
        }
    }

    /// Returns the seconds from a number or a decimal string; `nil` for any other value.
    static func seconds(_ value: JSONValue) -> Double? {
        let text: String
        switch value {
        case .number(let number): text = number
        case .string(let string): text = string
        default: return nil
        }
        let trimmed = text.utf8.filter { $0 != 0x20 }
        guard !trimmed.isEmpty, trimmed.count <= 64,
            trimmed.allSatisfy({ ASCII.isDigit($0) || ".-+eE".utf8.contains($0) }),
            let seconds = Double(String(decoding: trimmed, as: UTF8.self)), seconds.isFinite
        else { return nil }
        return seconds
    }

    private static func scopes(_ member: JSONParser.Member, _ body: Span<UInt8>) -> [String]? {
        if let text = member.secret(in: body) { return text.revealed.split(separator: " ").map(String.init) }
        guard case .other = member.value, case .array(let elements) = SecretMembers([member], of: body).values["scope"]
        else { return nil }
        return elements.compactMap(\.string)
    }
}

extension JSONParser.Member {
    /// Returns the decoded string value.
    /// - Parameter body: the text of the object.
    fileprivate func secret(in body: Span<UInt8>) -> Secret? { secretBytes(in: body).map { Secret($0) } }
}
