internal import WireText

/// The authorization server that an API's documents name, and the client at this server. Stored in the same record as
/// the tokens. Prints as `<redacted>`.
struct Enrolment: Sendable, Equatable, Redacted {
    /// `resource` as published; `nil`: the API publishes no metadata, and the issuer is configured.
    var resource: String?
    var issuer: String
    /// Scopes that the last sign-in requested.
    var scope: [String]
    var client: Client
    var registrations = Registrations()
    /// Enrolment of a sign-in in progress, if it differs from this enrolment; at most one element. It replaces this
    /// enrolment when the sign-in succeeds.
    var begun: [Enrolment] = []

    struct Client: Sendable, Equatable {
        var identifier: String
        var secret: Secret?
        var method: Method
        var source: Source
        var redirectURIs: [String] = []
        /// `client_secret_expires_at` (RFC 7591 section 3.2.1); 0: never.
        var secretExpiresAt: Int64 = 0
        /// Whether the server no longer knows the client (`invalid_client`).
        var isRefused = false

        /// Whether a registered client can't be used, because its server has forgotten it or its secret has expired.
        func isLost(at now: Int64) -> Bool {
            source == .registered && (isRefused || secretExpiresAt != 0 && secretExpiresAt <= now)
        }
    }

    /// Client authentication at the token endpoint.
    enum Method: String, Sendable {
        case none
        case basic = "client_secret_basic"
        case post = "client_secret_post"
        /// The configured authentication.
        case configured
    }

    /// Origin of the `client_id`.
    enum Source: String, Sendable {
        case configured
        /// The URL of a client ID metadata document.
        case document
        /// Registered by RFC 7591.
        case registered
        /// Entered by a person.
        case typed
    }

    /// Whether both have the same server and `client_id`, so that both can use the same tokens.
    func hasSameClient(as other: Enrolment) -> Bool {
        ServerMetadata.isSame(issuer, other.issuer) && client.identifier == other.client.identifier
    }

    /// Digest of server, client, resource and scopes. A login in progress is bound to this value. `nil`: libcrypto has
    /// no memory left.
    var digest: String? {
        TextDigest.make([issuer, client.identifier, client.method.rawValue, resource ?? ""] + scope)
    }

}

// In the store.
extension Enrolment {
    /// The enrolment as JSON, for the record.
    var stored: Secret {
        Secret(json: .object(members + [.init("begun", .array(begun.map { .object($0.members) }))]))
    }

    private var members: [JSON.Member] {
        [
            .init("resource", JSON(resource)), .init("issuer", .string(issuer)),
            .init("scope", JSON(scope)), .init("client_id", .string(client.identifier)),
            .init("client_secret", JSON(client.secret?.revealed)), .init("method", .string(client.method.rawValue)),
            .init("source", .string(client.source.rawValue)),
            .init("redirect_uris", JSON(client.redirectURIs)),
            .init("registrations", registrations.json),
            .init("secret_expires_at", .number(Int(client.secretExpiresAt))),
            .init("refused", .bool(client.isRefused)),
        ]
    }

    /// Reads an enrolment from the record; `nil` for other content.
    init?(stored: Secret) {
        guard let value = stored.withSpan({ try? JSONParser.parse($0) }) else { return nil }
        self.init(value)
        if case .array(let begun)? = value["begun"] { self.begun = begun.prefix(1).compactMap { Enrolment($0) } }
    }

    private init?(_ value: JSONValue) {
        guard let issuer = value["issuer"]?.string, let identifier = value["client_id"]?.string,
            let method = value["method"]?.string.flatMap({ Method(rawValue: $0) }),
            let source = value["source"]?.string.flatMap({ Source(rawValue: $0) })
        else { return nil }
        self.init(
            resource: value["resource"]?.string, issuer: issuer, scope: value["scope"]?.texts ?? [],
            client: Client(
                identifier: identifier, secret: value["client_secret"]?.string.map { Secret($0) }, method: method,
                source: source, redirectURIs: value["redirect_uris"]?.texts ?? [],
                secretExpiresAt: Self.number(value["secret_expires_at"]), isRefused: value["refused"] == .bool(true)),
            registrations: Registrations(value["registrations"]))
    }

    // MARK: Sign-ins

    /// Returns this enrolment with `new` as its sign-in in progress, unless both are alike.
    func beginning(_ new: Enrolment) -> Enrolment {
        var next = self
        next.registrations = new.registrations
        next.begun = isLike(new) ? [] : [new]
        return next
    }

    /// The enrolment after the sign-in in progress has succeeded.
    var succeeded: Enrolment {
        guard var next = begun.first else { return self }
        next.registrations = registrations
        return next
    }

    /// Whether both are equal, apart from past registrations and sign-ins in progress.
    func isLike(_ other: Enrolment) -> Bool {
        resource == other.resource && issuer == other.issuer && scope == other.scope && client == other.client
    }

    static func number(_ value: JSONValue?) -> Int64 {
        guard case .number(let text)? = value else { return 0 }
        return Int64(text) ?? 0
    }
}
