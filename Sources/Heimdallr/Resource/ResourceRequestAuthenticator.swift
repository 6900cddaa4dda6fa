/// What a token looks like on a request. The value is a secret.
public enum RequestCredential: Sendable, Equatable {
    case header(name: String, value: Secret)
    /// Not escaped yet.
    case query(name: String, value: Secret)
}

extension RequestCredential {
    /// Replaces what the request carried in that place.
    public func put(on request: inout HeimdallrHTTPRequest) {
        switch self {
        case .header(let name, let value):
            request.headers.removeAll { ASCII.equalIgnoringCase($0.name, name) }
            request.headers.append(HeimdallrHTTPField(name: name, secret: value))
        case .query:
            request.url = put(inURL: request.url)
        }
    }

    /// A URL, or the path and query of one, with the credential in its query; unchanged where it goes into a header.
    public func put(inURL url: String) -> String {
        guard case .query(let name, let value) = self else { return url }
        return QueryParameter.set(name, to: value, in: url)
    }
}

/// Puts an access token onto a request for a protected resource.
public protocol ResourceRequestAuthenticator: Sendable {
    func credential(for token: AccessToken) -> RequestCredential
}

extension ResourceRequestAuthenticator {
    /// Replaces what the request carried in that place.
    public func authenticate(_ request: inout HeimdallrHTTPRequest, with token: AccessToken) {
        credential(for: token).put(on: &request)
    }
}

/// `Authorization: Bearer …` (RFC 6750 section 2.1), or another header and scheme.
public struct ResourceRequestAuthenticatorHTTPHeader: ResourceRequestAuthenticator {
    public let name: String
    /// `nil`: the token alone.
    public let scheme: String?

    /// `name` and `scheme` must be tokens of RFC 9110 section 5.6.2.
    public init(name: String = "Authorization", scheme: String? = "Bearer") {
        self.name = name
        self.scheme = scheme
    }

    public func credential(for token: AccessToken) -> RequestCredential {
        guard let scheme, !scheme.isEmpty else { return .header(name: name, value: token.value) }
        return .header(name: name, value: Secret("\(scheme) ", before: token.value.bytes))
    }
}

/// `?access_token=…` (RFC 6750 section 2.3, which advises against it: addresses end up in logs).
public struct ResourceRequestAuthenticatorQueryParameter: ResourceRequestAuthenticator {
    public let name: String

    public init(name: String = "access_token") {
        self.name = name
    }

    public func credential(for token: AccessToken) -> RequestCredential {
        .query(name: name, value: token.value)
    }
}
