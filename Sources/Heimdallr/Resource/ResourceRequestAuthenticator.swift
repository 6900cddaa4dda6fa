internal import WireText

/// Form of a token on a request: header field or query parameter, and its value.
public enum RequestCredential: Sendable, Equatable {
    /// A header field, such as `Authorization: Bearer …`.
    case header(name: String, value: Secret)
    /// A parameter of the URL's query. The value is not escaped yet.
    case query(name: String, value: Secret)
}

extension RequestCredential {
    /// Puts the credential on `request`, in place of the request's own credential.
    public func put(on request: inout HeimdallrHTTPRequest) {
        switch self {
        case .header(let name, let value):
            request.headers.removeAll { ASCII.equalIgnoringCase($0.name, name) }
            request.headers.append(HeimdallrHTTPField(name: name, secret: value))
        case .query: request.url = put(inURL: request.url)
        }
    }

    /// Returns `url` (or path and query) with the credential in its query, in place of parameters of the same name. A
    /// credential for a header field changes nothing.
    public func put(inURL url: String) -> String {
        guard case .query(let name, let value) = self else { return url }
        let hash = url.firstIndex(of: "#") ?? url.endIndex
        let (rest, fragment) = (url[..<hash], url[hash...])
        let encodedName = PercentEncoding.uri.encode(name)
        let pair = "\(encodedName)=\(PercentEncoding.uri.encode(value.revealedBytes))"
        guard let mark = rest.firstIndex(of: "?") else { return "\(rest)?\(pair)\(fragment)" }
        var kept = rest[rest.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
            .filter { $0.prefix { $0 != "=" } != encodedName && $0.prefix { $0 != "=" } != name }
        if kept == [""] { kept = [] }
        return "\(rest[..<mark])?\((kept + [pair[...]]).joined(separator: "&"))\(fragment)"
    }
}

/// Puts an access token on a request for a protected resource.
public protocol ResourceRequestAuthenticator: Sendable {
    /// Returns the form of `token` on a request. Called on any thread, once for each request. Must not block.
    func credential(for token: AccessToken) -> RequestCredential
}

extension ResourceRequestAuthenticator {
    /// Puts `token` on `request`, in place of the request's own credential.
    public func authenticate(_ request: inout HeimdallrHTTPRequest, with token: AccessToken) {
        credential(for: token).put(on: &request)
    }
}

/// Puts the token into a header field: `Authorization: Bearer …` (RFC 6750 section 2.1), or another name and scheme.
public struct ResourceRequestAuthenticatorHTTPHeader: ResourceRequestAuthenticator {
    /// The header field's name.
    public let name: String
    /// Word before the token, followed by a space; `nil`: the value is the token alone.
    public let scheme: String?

    /// Makes an authenticator. Name and scheme must be tokens in the sense of RFC 9110 section 5.6.2.
    public init(name: String = "Authorization", scheme: String? = "Bearer") {
        self.name = name
        self.scheme = scheme
    }

    /// Returns the header field with scheme and token.
    public func credential(for token: AccessToken) -> RequestCredential {
        guard let scheme, !scheme.isEmpty else { return .header(name: name, value: token.value) }
        // A token that is bound to a key has the scheme DPoP (RFC 9449 section 7.1).
        let shown = token.binding != nil && ASCII.equalIgnoringCase(scheme, "Bearer") ? "DPoP" : scheme
        return .header(name: name, value: Secret("\(shown) ", before: token.value.bytes))
    }
}

/// Puts the token into the URL's query: `?access_token=…`. RFC 6750 section 2.3 advises against it: logs show URLs.
public struct ResourceRequestAuthenticatorQueryParameter: ResourceRequestAuthenticator {
    /// The query parameter's name.
    public let name: String

    /// - Parameter name: the query parameter's name, not escaped.
    public init(name: String = "access_token") { self.name = name }

    /// Returns the query parameter with the token.
    public func credential(for token: AccessToken) -> RequestCredential { .query(name: name, value: token.value) }
}
