public import WireText

/// An entry of `issue`: the token requests that it fits, and the client whose token replaces the placeholder in the answer.
public struct IssueSettings: Sendable, Equatable {
    public var client: String
    /// The program's `client_id`, or `iss` of its assertion; the client's own if the entry names none.
    public var clientID: String
    /// Secrets that the program must send; `nil`: any.
    public var clientSecret: SecretSource?
    public var refreshToken: SecretSource?
    /// Scopes that the program may ask for; empty: any.
    public var scope: [String] = []
    /// The person that the program must name: `sub` of an assertion, `username`; `nil`: it must name nobody.
    public var subject: String?
    /// Life of the placeholder, as the program is told.
    public var expiresIn = Duration.seconds(3600)
    /// Further members of the answer.
    public var answer: [String: JSONValue] = [:]

    init(client: String, clientID: String) { (self.client, self.clientID) = (client, clientID) }

    /// Secrets in the order of the proxy's values: `client_secret`, `refresh_token`.
    public var secrets: [(key: String, source: SecretSource?)] {
        [("client_secret", clientSecret), ("refresh_token", refreshToken)]
    }

    /// Whether every request that fits `other` fits this entry.
    func covers(_ other: IssueSettings) -> Bool {
        clientID == other.clientID && subject == other.subject
            && (clientSecret == nil || clientSecret == other.clientSecret)
            && (refreshToken == nil || refreshToken == other.refreshToken)
            && (scope.isEmpty || !other.scope.isEmpty && other.scope.allSatisfy(scope.contains))
    }
}

extension UpstreamSettings {
    /// What the proxy answers here itself, for `check` and `why`; empty if requests are forwarded.
    public var ownAnswer: String {
        guard let metadata else { return issue.map(\.description).joined(separator: "; ") }
        return "the token of \(client ?? ""), as \(metadata.kind.name)'s metadata service gives it"
    }

    /// Whether the proxy answers all requests itself.
    public var answersHere: Bool { !issue.isEmpty || metadata != nil }
}

extension IssueSettings: CustomStringConvertible {
    /// `a placeholder of billing for legacy-billing, scope read`, without secrets.
    public var description: String {
        var text = "a placeholder of \(client) for \(clientID)"
        if !scope.isEmpty { text += ", scope \(scope.joined(separator: " "))" }
        if let subject { text += ", subject \(subject)" }
        return text
    }
}
