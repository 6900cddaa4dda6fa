internal import Cryptography
internal import WireText

/// Grant that sends a JWT as the authorization: RFC 7523 section 2.1.
public struct JWTBearerGrant: OAuthAuthorizationGrant {
    public let type = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    public let needs = GrantNeeds.nobody
    public let namesIdentityAnew = true
    private let source: Source

    private enum Source: Sendable {
        case provided(any SecretProvider)
        case signedHere(SignedAssertion)
    }

    /// The subject of an assertion that is signed here (RFC 7523 section 3); empty for a provider's assertion.
    public var account: String { if case .signedHere(let assertion) = source { assertion.subject ?? "" } else { "" } }

    /// - Parameter assertion: an assertion that is signed here for each token request.
    public init(assertion: SignedAssertion) { source = .signedHere(assertion) }

    /// - Parameter assertion: the JWT, in its compact form. Read before each token request.
    public init(assertion: any SecretProvider) { source = .provided(assertion) }

    /// Returns the parameters with the provider's assertion. Throws if the assertion is signed here.
    public func parameters() async throws -> [FormParameter] {
        guard case .provided(let provider) = source else {
            throw SecretProviderError("this assertion can be signed only for a token request")
        }
        let assertion = try await provider.secret().withoutSpaceAround
        guard assertion.isVisible else {
            throw SecretProviderError("the assertion is not a JWT: it is empty, or not all of it is visible ASCII")
        }
        return [FormParameter("assertion", assertion)]
    }

    public func parameters(for request: GrantRequest) async throws -> [FormParameter] {
        guard case .signedHere(let assertion) = source else { return try await parameters() }
        return [FormParameter("assertion", try await assertion.sign(for: request))]
    }
}

/// Grant that sends a SAML 2.0 assertion as the authorization: RFC 7522 section 2.1.
public struct SAML2BearerGrant: OAuthAuthorizationGrant {
    public let type = "urn:ietf:params:oauth:grant-type:saml2-bearer"
    public let needs = GrantNeeds.nobody
    public let namesIdentityAnew = true
    private let assertion: any SecretProvider

    /// - Parameter assertion: XML, or base64-encoded XML in any variant. Read before each token request.
    public init(assertion: any SecretProvider) { self.assertion = assertion }

    public func parameters() async throws -> [FormParameter] {
        [FormParameter("assertion", try Self.encoded(try await assertion.secret()))]
    }

    /// Returns the assertion as base64url, without line ends and padding.
    private static func encoded(_ secret: Secret) throws -> Secret {
        if beginsAsXML(secret) { return Secret(Base64.encode(secret.bytes, alphabet: .url)) }
        var text = SecretWriter(capacity: secret.count)
        secret.withSpan { span in
            for index in span.indices where !ASCII.isWhitespace(span[index]) { text.append(span[index]) }
        }
        var xml = SecretWriter(capacity: secret.count)
        let isEncoded = text.withSpan { Base64.decode($0, as: .either) { xml.append($0) } }
        let decoded = Secret(xml.finish())
        guard isEncoded, beginsAsXML(decoded) else {
            throw SecretProviderError("the SAML assertion is neither XML nor base64-encoded XML")
        }
        return Secret(Base64.encode(decoded.bytes, alphabet: .url))
    }

    /// Whether the first character after a byte order mark and white space is `<`.
    private static func beginsAsXML(_ secret: Secret) -> Bool {
        secret.withSpan { span in
            var index = 0
            if span.count >= 3, span[0] == 0xEF, span[1] == 0xBB, span[2] == 0xBF { index = 3 }
            while index < span.count, ASCII.isWhitespace(span[index]) { index += 1 }
            return index < span.count && span[index] == UInt8(ascii: "<")
        }
    }
}

extension Secret {
    /// The secret without white space at both ends, such as the line end of a file or of a command's output.
    var withoutSpaceAround: Secret {
        withSpan { span in
            var (start, end) = (0, span.count)
            while start < end, ASCII.isWhitespace(span[start]) { start += 1 }
            while end > start, ASCII.isWhitespace(span[end - 1]) { end -= 1 }
            return start == 0 && end == span.count ? self : Secret(span.extracting(start..<end))
        }
    }

    /// Whether all octets are 0x21 to 0x7E. Such a value can't add a line end or a field to a request. False if empty.
    var isVisible: Bool {
        withSpan { span in span.count > 0 && span.indices.allSatisfy { (0x21...0x7E).contains(span[$0]) } }
    }

    /// Whether all octets are printable ASCII, 0x20 to 0x7E, as in a refresh token (RFC 6749 appendix A.17).
    var isPrintable: Bool {
        withSpan { span in span.indices.allSatisfy { (0x20...0x7E).contains(span[$0]) } }
    }
}
