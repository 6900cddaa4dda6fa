/// Reads the body of a token endpoint's successful answer.
public protocol OAuthAccessTokenParser: Sendable {
    /// - Throws: what is wrong with it; nothing has changed then.
    func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse
}

/// JSON, as RFC 6749 section 5.1 has it, and what real servers make of it: `expires_in` as a number, a fraction or a
/// numeric string; `scope` as a string or an array; a byte order mark. The content type is not looked at.
public struct OAuthAccessTokenDefaultParser: OAuthAccessTokenParser {
    public init() {}

    public func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse {
        guard body.contains(where: { $0 > 0x20 }) else { throw .emptyBody }
        let value: JSONValue
        do { value = try JSONParser.parse(body) } catch { throw .notJSON }
        guard case .object(var members) = value else { throw .notAnObject }

        guard let accessToken = members.removeValue(forKey: "access_token")?.string, !accessToken.isEmpty else {
            throw .noAccessToken
        }
        var response = TokenResponse(
            accessToken: Secret(accessToken), tokenType: members.removeValue(forKey: "token_type")?.string)
        response.expiresIn = members.removeValue(forKey: "expires_in").flatMap(Self.seconds)
        switch members.removeValue(forKey: "refresh_token") {
        case nil, .null, .string(""): break
        case .string(let text):
            guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 <= 0x7E }) else { throw .badRefreshToken }
            response.refreshToken = Secret(text)
        default: throw .badRefreshToken
        }
        // The second name is Keycloak's.
        let refreshLives = ["refresh_token_expires_in", "refresh_expires_in"].map {
            members.removeValue(forKey: $0).flatMap(Self.seconds)
        }
        response.refreshTokenExpiresIn = refreshLives.compactMap { $0 }.first
        if case .string(let text) = members.removeValue(forKey: "id_token"), !text.isEmpty {
            response.idToken = Secret(text)
        }
        response.scope = members.removeValue(forKey: "scope").flatMap(Self.scopes)
        response.extra = members
        return response
    }

    /// A number, or a string that spells one in decimal. Anything else is as if it were absent.
    static func seconds(_ value: JSONValue) -> Double? {
        let text: String
        switch value {
        case .number(let number): text = number
        case .string(let string): text = string
        default: return nil
        }
        let trimmed = text.utf8.filter { $0 != 0x20 }
        guard !trimmed.isEmpty, trimmed.count <= 64,
            trimmed.allSatisfy({ byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "+"),
                    UInt8(ascii: "e"), UInt8(ascii: "E"):
                    true
                default: false
                }
            }),
            let seconds = Double(String(decoding: trimmed, as: UTF8.self)), seconds.isFinite
        else { return nil }
        return seconds
    }

    private static func scopes(_ value: JSONValue) -> [String]? {
        switch value {
        case .string(let text): text.split(separator: " ").map(String.init)
        case .array(let elements): elements.compactMap(\.string)
        default: nil
        }
    }
}
