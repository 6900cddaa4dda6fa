internal import WireText

/// Challenge of an API: RFC 6750 section 3, RFC 9728 section 5, RFC 9470.
public struct ResourceChallenge: Sendable, Equatable {
    /// Address of the request at the API, without its query.
    public var url: String
    /// `resource_metadata`: address of the API's metadata.
    public var metadata: String?
    /// The names in `scope`; `nil`: the challenge has none.
    public var scope: [String]?
    /// Reason for the refusal.
    public var reason: Reason
    /// `acr_values`: kinds of authentication that the API accepts (RFC 9470 section 3).
    public var acrValues: String?
    /// `max_age`: maximum age of the authentication, in seconds.
    public var maxAge: Int?

    /// Reason for the refusal, from the parameter `error`.
    public enum Reason: Sendable, Hashable {
        /// The token is missing, or the API does not accept it.
        case token
        /// The token lacks scopes: `insufficient_scope`.
        case scope
        /// The person has to authenticate again or more strongly: `insufficient_user_authentication`.
        case authentication
    }

    /// Makes a challenge. The parameters are the properties. Values that are invalid or too long are ignored.
    public init(
        url: String, metadata: String? = nil, scope: String? = nil, error: String? = nil, acrValues: String? = nil,
        maxAge: String? = nil
    ) {
        self.url = url
        self.metadata = metadata.flatMap { $0.utf8.count <= ResourceMetadata.maxTextBytes ? $0 : nil }
        self.scope = scope.map { ScopeChoice.names(in: $0) }
        reason =
            switch error {
            case "insufficient_scope": .scope
            case "insufficient_user_authentication": .authentication
            default: .token
            }
        self.acrValues = acrValues.flatMap { text in
            text.utf8.count <= 1024 && text.utf8.allSatisfy { (0x20...0x7E).contains($0) } ? text : nil
        }
        self.maxAge = maxAge.flatMap { Int($0) }.flatMap { (0...31_536_000).contains($0) ? $0 : nil }
    }
}

/// Choice of scopes for a sign-in.
struct ScopeChoice: Sendable {
    /// Scopes of the challenge; `nil`: the challenge names none.
    var challenged: [String]?
    /// `scopes_supported` of the resource.
    var ofResource: [String]?
    /// `scopes_supported` of the authorization server.
    var ofServer: [String] = []
    /// Scopes that the API found missing, and the scopes of the last sign-in.
    var further: [String] = []
    /// The operator's limit; `nil`: none.
    var allowed: [String]?

    static let offline = "offline_access"

    /// Returns the scopes to request, each once; empty: the server decides.
    /// - Throws: `DiscoveryFault.scopesNotAllowed` if the limit excludes all of them.
    func scopes() throws(DiscoveryFault) -> [String] {
        var wanted: [String] = []
        for name in (challenged ?? ofResource ?? []) + further where !wanted.contains(name) { wanted.append(name) }
        // Only the authorization server knows if it issues refresh tokens, so the API's `offline_access` is ignored.
        wanted.removeAll { $0 == Self.offline }
        if !wanted.isEmpty, ofServer.contains(Self.offline) { wanted.append(Self.offline) }
        guard let allowed else { return wanted }
        // Without any scope the server could choose more than the limit allows.
        let kept = wanted.isEmpty ? allowed : wanted.filter { allowed.contains($0) }
        guard !kept.isEmpty else { throw .scopesNotAllowed(wanted.map { ForeignText.printable($0) }) }
        return kept
    }

    /// Returns the scope-tokens (RFC 6749 section 3.3) of a text. Limits their length and number.
    static func names(in text: String) -> [String] { GrantedScope.keep([text], askedFor: [], hiding: []) }
}
