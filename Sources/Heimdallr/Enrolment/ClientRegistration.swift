internal import HTTPMessage
internal import WireText

/// Dynamic client registration (RFC 7591): builds the request and reads the response.
enum ClientRegistration {
    static let grantTypes = ["authorization_code", "refresh_token"]

    /// Returns a loopback URI with `127.0.0.1` and with `localhost`, because some servers accept only one of these
    /// hosts. Returns any other URI alone.
    static func redirectURIs(_ uri: String) -> [String] {
        let others = ["127.0.0.1": "localhost", "localhost": "127.0.0.1"]
        guard let url = try? WebURL(uri), url.scheme == .http, case let host = url.authority.host.description,
            let other = others[host]
        else { return [uri] }
        return [uri, uri.replacing("//" + host, with: "//" + other, maxReplacements: 1)]
    }

    /// Returns `none`; `secretMethod(offered:)` if the server supports only clients with a secret.
    static func method(offered: [String]?) -> Enrolment.Method {
        guard let offered, !offered.contains(Enrolment.Method.none.rawValue) else { return .none }
        return secretMethod(offered: offered)
    }

    /// Returns the place of a secret in token requests: the body if offered, otherwise Basic (RFC 8414 section 2). The
    /// body comes first, because servers made with the MCP packages require `client_id` there even with Basic.
    static func secretMethod(offered: [String]?) -> Enrolment.Method {
        offered?.contains(Enrolment.Method.post.rawValue) ?? false ? .post : .basic
    }

    /// Returns client metadata (RFC 7591 section 2). `application_type` is from OpenID Connect Registration.
    static func members(
        name: String, redirectURIs: [String], method: Enrolment.Method, scope: [String]
    ) -> [JSON.Member] {
        var members: [JSON.Member] = [
            .init("client_name", .string(name)), .init("application_type", "native"),
            .init("redirect_uris", JSON(redirectURIs)),
            .init("grant_types", JSON(grantTypes)), .init("response_types", .array(["code"])),
            .init("token_endpoint_auth_method", .string(method.rawValue)),
        ]
        if !scope.isEmpty { members.append(.init("scope", .string(scope.joined(separator: " ")))) }
        return members
    }

    /// Reads the response (RFC 7591 section 3.2.1). The server's values replace the requested ones.
    /// - Throws: `DiscoveryFault.registration`
    static func client(
        in body: Secret, requested: Enrolment.Method, offered: [String]?, redirectURIs: [String]
    ) throws(DiscoveryFault) -> Enrolment.Client {
        guard let value = body.withSpan({ try? JSONParser.parse($0) }), let identifier = value["client_id"]?.string,
            isVisible(identifier, spaces: true)
        else { throw .registration("its answer has no client_id") }
        // Some servers send an empty secret to public clients.
        let secret = value["client_secret"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        guard secret.map({ isVisible($0, spaces: true) }) ?? true else {
            throw .registration("its answer has a client_secret that can't be sent")
        }
        let method: Enrolment.Method
        switch value["token_endpoint_auth_method"]?.string {
        case nil: method = secret == nil ? .none : requested == .none ? secretMethod(offered: offered) : requested
        case let named?:
            guard let known = Enrolment.Method(rawValue: named), known != .configured else {
                throw .registration("it requires \(ForeignText.printable(named)), which needs a configured client")
            }
            method = known
        }
        guard method == .none || secret != nil else {
            throw .registration("its answer has no client_secret, but requires one")
        }
        return Enrolment.Client(
            identifier: identifier, secret: method == .none ? nil : secret.map { Secret($0) }, method: method,
            source: .registered, redirectURIs: redirectURIs,
            secretExpiresAt: method == .none ? 0 : Enrolment.number(value["client_secret_expires_at"]))
    }

    /// Whether a text has only visible ASCII characters (RFC 6749 appendix A), at least one, and is not too long.
    /// - Parameter spaces: whether spaces are allowed, as in `client_id` and `client_secret`.
    static func isVisible(_ text: String, spaces: Bool) -> Bool {
        !text.isEmpty && text.utf8.count <= ResourceMetadata.maxTextBytes
            && text.utf8.allSatisfy { (spaces ? 0x20 : 0x21)...0x7E ~= $0 }
    }
}

/// Client ID metadata document. The operator publishes it at an https:// URL, which is the `client_id`.
public enum ClientDocument {
    /// Returns the document.
    /// - Parameters:
    ///   - identifier: the document's URL, which is the `client_id`.
    ///   - name: the client's name, which servers show to people.
    ///   - redirectURI: address to which the server redirects the browser.
    ///   - keys: address of the client's public keys (`jwks_uri`); `nil`: the client has no key.
    public static func json(identifier: String, name: String, redirectURI: String, keys: String? = nil) -> String {
        var members: [JSON.Member] = [.init("client_id", .string(identifier))]
        members += ClientRegistration.members(
            name: name, redirectURIs: ClientRegistration.redirectURIs(redirectURI), method: .none, scope: [])
        if let keys {
            members.removeAll { $0.name == "token_endpoint_auth_method" }
            members.append(.init("token_endpoint_auth_method", "private_key_jwt"))
            members.append(.init("jwks_uri", .string(keys)))
        }
        return JSON.object(members).document
    }
}
