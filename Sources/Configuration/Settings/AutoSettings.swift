/// A client whose authorization server and `client_id` come from the documents of one API: `client: auto`.
public struct AutoSettings: Sendable, Equatable {
    /// Address of the API, as the upstream's `url`.
    public var resource: String
    /// Address of the operator's client ID metadata document.
    public var clientDocument: String?
    /// The only scopes that are asked for; `nil`: no limit.
    public var allowedScopes: [String]?
    /// Client whose id token is exchanged for an assertion about the person; `nil`: none.
    public var subjectClient: String?
    /// The upstream's leg, by which the API's own documents come.
    public var tls = TLSSettings()

    public init(resource: String) { self.resource = resource }
}
