/// Settings of `client: auto`, for an API whose own documents name its authorization server.
public struct AutoSettings: Sendable, Equatable {
    /// Address of the API, the same as the upstream's `url`.
    public var resource: String
    /// Address of the operator's client ID metadata document.
    public var clientDocument: String?
    /// The only scopes that the proxy may request; `nil` for no limit.
    public var allowedScopes: [String]?
    /// Name of the client whose id token is exchanged for an assertion about the person; `nil` without `subject_token`.
    public var subjectClient: String?
    /// TLS settings of the upstream, for requests for the API's own documents.
    public var tls = TLSSettings()
}
