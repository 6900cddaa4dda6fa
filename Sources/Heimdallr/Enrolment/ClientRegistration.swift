internal import WireText

/// Dynamic client registration: RFC 7591. Builds the request and reads its answer.
enum ClientRegistration {
    static let grantTypes = ["authorization_code", "refresh_token"]

    /// Redirect URIs of one address, spelt with `127.0.0.1` and with `localhost`: some servers take only one of them.
    static func redirectURIs(_ uri: String) -> [String] {
        for (name, other) in [("http://127.0.0.1", "http://localhost"), ("http://localhost", "http://127.0.0.1")]
        where uri.hasPrefix(name) {
            let rest = uri.dropFirst(name.count)
            if rest.isEmpty || rest.hasPrefix(":") || rest.hasPrefix("/") { return [uri, other + rest] }
        }
        return [uri]
    }

    /// `none`, unless the server offers secrets only.
    static func method(offered: [String]?) -> Enrolment.Method {
        guard let offered, !offered.contains(Enrolment.Method.none.rawValue) else { return .none }
        return secretMethod(offered: offered)
    }

    /// Place of a secret in token requests (RFC 8414 section 2: Basic without a list).
    static func secretMethod(offered: [String]?) -> Enrolment.Method {
        guard let offered, !offered.contains(Enrolment.Method.basic.rawValue),
            offered.contains(Enrolment.Method.post.rawValue)
        else { return .basic }
        return .post
    }

    /// Metadata of the client: RFC 7591 section 2; `application_type` is OpenID Connect Registration's.
    static func members(
        name: String, redirectURIs: [String], method: Enrolment.Method, scope: [String]
    ) -> [JSON.Member] {
        var members: [JSON.Member] = [
            .init("client_name", .string(name)), .init("application_type", "native"),
            .init("redirect_uris", .array(redirectURIs.map { .string($0) })),
            .init("grant_types", .array(grantTypes.map { .string($0) })), .init("response_types", .array(["code"])),
            .init("token_endpoint_auth_method", .string(method.rawValue)),
        ]
        if !scope.isEmpty { members.append(.init("scope", .string(scope.joined(separator: " ")))) }
        return members
    }

    /// Reads the server's answer (RFC 7591 section 3.2.1). Its values replace ours.
    /// - Throws: `DiscoveryFault.registration`
    static func client(
        in body: Secret, asked: Enrolment.Method, offered: [String]?, redirectURIs: [String], at now: Int64
    ) throws(DiscoveryFault) -> Enrolment.Client {
        guard let value = body.withSpan({ try? JSONParser.parse($0) }), let identifier = value["client_id"]?.string,
            isVisible(identifier, spaces: true)
        else { throw .registration("its answer has no client_id") }
        let secret = value["client_secret"]?.string
        guard secret.map({ isVisible($0, spaces: true) }) ?? true else {
            throw .registration("its answer has a client_secret that can't be sent")
        }
        let method: Enrolment.Method
        switch value["token_endpoint_auth_method"]?.string {
        case nil: method = secret == nil ? .none : asked == .none ? secretMethod(offered: offered) : asked
        case let named?:
            guard let known = Enrolment.Method(rawValue: named), known != .configured else {
                throw .registration("it wants \(ForeignText.printable(named)), which needs a configured client")
            }
            method = known
        }
        guard method == .none || secret != nil else {
            throw .registration("its answer has no client_secret, though it wants one")
        }
        return Enrolment.Client(
            identifier: identifier, secret: method == .none ? nil : secret.map { Secret($0) }, method: method,
            source: .registered, redirectURIs: redirectURIs, registeredAt: now,
            secretExpiresAt: Enrolment.number(value["client_secret_expires_at"]))
    }

    /// RFC 6749 appendix A: `client_id` and `client_secret` are of visible ASCII and spaces.
    static func isVisible(_ text: String, spaces: Bool) -> Bool {
        !text.isEmpty && text.utf8.count <= ResourceMetadata.maxTextBytes
            && text.utf8.allSatisfy { (spaces ? 0x20 : 0x21)...0x7E ~= $0 }
    }

    /// Whether another registration may be asked for: one an hour for each issuer, and one at once for a refused client.
    /// - Returns: the wait; zero: now.
    static func wait(after last: Enrolment.Client?, now: Int64) -> Int64 {
        guard let last, last.source == .registered else { return 0 }
        if last.isRefused, last.renewals == 0 { return 0 }
        let age = now >= last.registeredAt ? now - last.registeredAt : pause
        return max(0, pause - age)
    }

    static let pause: Int64 = 3600
}

/// Client ID metadata document: the operator publishes it at an https:// address, which is then the `client_id`.
public enum ClientDocument {
    /// Returns the document for an address.
    /// - Parameters:
    ///   - identifier: its address.
    ///   - redirectURI: where the server sends the browser back to.
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
