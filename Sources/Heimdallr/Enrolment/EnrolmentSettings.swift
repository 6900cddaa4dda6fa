/// Settings of a client whose authorization server, scopes and `client_id` come from the documents of one API: RFC 9728,
/// RFC 8414, RFC 7591.
public struct EnrolmentSettings: Sendable, Equatable {
    /// Address of the API: an https:// URL; http:// with `HeimdallrConfiguration.allowPlaintext`.
    public var resource: String
    /// The issuer to use, exactly as the API names it. `nil`: the only one that it names.
    public var issuer: String?
    /// Address of a client ID metadata document, which is the `client_id` where the server reads such documents.
    public var clientDocument: String?
    /// The only scopes that may be asked for. `nil`: no limit.
    public var allowedScopes: [String]?
    /// The client's name, which servers show to people.
    public var clientName = "heimdallr-proxy"

    /// Makes settings for the API at this address.
    public init(resource: String) { self.resource = resource }
}

/// Plan of a sign-in: the authorization server, the scopes, the client, and the browser's destination. Holds no secret.
public struct SignInOffer: Sendable, Equatable {
    /// Origin of the `client_id`.
    public enum Client: Sendable, Equatable {
        /// In the configuration.
        case configured(String)
        /// A client ID metadata document at this address.
        case document(String)
        /// Registered before.
        case known(String)
        /// Typed in by a person before.
        case typed(String)
        /// To be registered at the sign-in (RFC 7591).
        case registered
        /// A person has to type in id and secret.
        case wanted
    }

    /// The resource's identifier as published; `nil`: the API publishes none.
    public var resource: String?
    /// The authorization server.
    public var issuer: String
    /// The scopes to ask for; empty: the server decides.
    public var scope: [String]
    /// The authorization endpoint, to which the browser goes.
    public var authorizationEndpoint: String
    /// Endpoints at another host, port or scheme than the issuer's: their names in the metadata, and their hosts; origins where
    /// the host is the issuer's.
    public var foreignEndpoints: [String: String]
    /// Origin of the `client_id`.
    public var client: Client
    /// The document that named the issuer and the scopes; `nil`: the configuration did.
    public var document: String?
    /// Kinds of authentication that the API accepts (RFC 9470); `nil`: any.
    public var acrValues: String?
    /// Maximum age of the person's authentication that the API accepts, in seconds (RFC 9470); `nil`: any.
    public var maxAge: Int?

    var metadata: ServerMetadata

    /// Further parameters for the authorization endpoint: RFC 9470 section 4; `prompt`, without which OpenID providers give no
    /// refresh token (OpenID Connect Core section 11).
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
    /// `resource` as published; `nil`: none, or not known yet.
    public var resource: String?
    /// The authorization server; `nil`: not known yet.
    public var issuer: String?
    /// Word for the origin of the `client_id`: `configured`, `document`, `registered` or `typed`; `nil`: there is none yet.
    public var client: String?
    /// The document that named the issuer; `nil`: none was read since the start.
    public var document: String?
    /// See `SignInOffer.foreignEndpoints`.
    public var foreignEndpoints: [String: String] = [:]
    /// Scopes that the API found missing. A sign-in asks for them.
    public var missingScopes: [String] = []
    /// Whether the API wants a better or newer authentication of the person (RFC 9470).
    public var wantsAuthentication = false
    /// Last failure to prepare a sign-in.
    public var fault: DiscoveryFault?
}
