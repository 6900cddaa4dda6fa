/// Settings of a client whose authorization server, scopes and `client_id` come from the documents of one API: RFC
/// 9728, RFC 8414, RFC 7591.
public struct EnrolmentSettings: Sendable, Equatable {
    /// Address of the API: an https:// URL; http:// with `HeimdallrConfiguration.allowPlaintext`.
    public var resource: String
    /// The issuer to use, exactly as the API names it; `nil`: the only issuer that the API names.
    public var issuer: String?
    /// URL of a client ID metadata document. It is the `client_id` if the server reads such documents.
    public var clientDocument: String?
    /// The only scopes that may be requested; `nil`: no limit.
    public var allowedScopes: [String]?
    /// What the operator says of PKCE at `issuer`; `nil`: the server's metadata has to list S256.
    public var pkce: PKCE?
    /// The client's name, which servers show to people.
    public var clientName = "heimdallr-proxy"

    /// Makes settings for the API at this address.
    public init(resource: String) { self.resource = resource }
}

/// Plan of a sign-in: authorization server, scopes, client, and authorization endpoint. Holds no secret.
public struct SignInOffer: Sendable, Equatable {
    /// Origin of the `client_id`.
    public enum Client: Sendable, Equatable {
        /// Configured.
        case configured(String)
        /// A client ID metadata document at this address.
        case document(String)
        /// Registered before.
        case known(String)
        /// Entered by a person before.
        case typed(String)
        /// To be registered at the sign-in (RFC 7591).
        case registered
        /// A person has to enter the `client_id` and secret.
        case wanted
    }

    /// The resource's identifier as published; `nil`: the API publishes none.
    public var resource: String?
    /// The authorization server.
    public var issuer: String
    /// The scopes to request; empty: the server decides.
    public var scope: [String]
    /// The authorization endpoint, to which the browser goes.
    public var authorizationEndpoint: String
    /// Endpoints whose origin is not the issuer's. Keys are the names in the metadata. Values are host and port, with
    /// the scheme before them if the host is the issuer's.
    public var foreignEndpoints: [String: String]
    /// Origin of the `client_id`.
    public var client: Client
    /// URL of the document that names the issuer and the scopes; `nil`: the configuration names the issuer.
    public var document: String?
    /// Kinds of authentication that the API accepts (RFC 9470); `nil`: any.
    public var acrValues: String?
    /// Maximum age of the person's authentication, in seconds (RFC 9470); `nil`: the API accepts any age.
    public var maxAge: Int?

    var metadata: ServerMetadata

    /// Further parameters for the authorization endpoint (RFC 9470 section 4). With `offline_access`, OpenID providers
    /// require `prompt=consent` (OpenID Connect Core section 11).
    var furtherParameters: [FormParameter] {
        (scope.contains(ScopeChoice.offline) ? [FormParameter("prompt", "consent")] : [])
            + (acrValues.map { [FormParameter("acr_values", $0)] } ?? [])
            + (maxAge.map { [FormParameter("max_age", "\($0)")] } ?? [])
    }
}

/// State of a client whose server an API names. Holds no secret.
public struct EnrolmentReport: Sendable, Equatable {
    /// Address of the API.
    public var url: String
    /// `resource_metadata` of the API's last challenge.
    public var challenged: String?
    /// `resource` as published; `nil`: none, or unknown so far.
    public var resource: String?
    /// The authorization server; `nil`: unknown so far.
    public var issuer: String?
    /// Origin of the `client_id`: `configured`, `document`, `registered` or `typed`; `nil`: there is no client yet.
    public var client: String?
    /// URL of the document that named the issuer; `nil`: no document was read since the start.
    public var document: String?
    /// See `SignInOffer.foreignEndpoints`.
    public var foreignEndpoints: [String: String] = [:]
    /// Scopes that the API found missing. The next sign-in requests them.
    public var missingScopes: [String] = []
    /// Whether the API requires a stronger or newer authentication of the person (RFC 9470).
    public var wantsAuthentication = false
    /// Last failure to prepare a sign-in.
    public var fault: DiscoveryFault?
}
