internal import Cryptography
internal import HTTPMessage
internal import SigV4
internal import WireText

/// Temporary keys of AWS from its Security Token Service (STS): by `AssumeRoleWithWebIdentity` for a web identity, else by
/// `AssumeRole` for a role, else by `GetSessionToken`. The access token is the session token; `AccessKeyId` and
/// `SecretAccessKey` are members of the answer.
/// https://docs.aws.amazon.com/STS/latest/APIReference/Welcome.html
public struct AWSGrant: OAuthAuthorizationGrant, OwnTokenRequest {
    /// What the request proves its right by.
    public enum Identity: Sendable {
        /// Access keys of a user, or temporary ones with their session token, which sign the request.
        case keys(id: any SecretProvider, secret: any SecretProvider, session: (any SecretProvider)?)
        /// A token of an OpenID provider, which the role trusts.
        case webIdentity(any SecretProvider)
    }

    public let type = "aws"
    public let needs = GrantNeeds.nobody
    /// This grant.
    public var ownRequest: (any OwnTokenRequest)? { self }
    private let identity: Identity
    private let region: String
    private let role: String?
    private let session: String
    private let externalID: String?
    private let seconds: Int?

    /// - Parameters:
    ///   - identity: read before each request.
    ///   - region: of the endpoint, for the signature.
    ///   - role: ARN of the role; a web identity needs one.
    ///   - session: name of the session in AWS's logs.
    ///   - externalID: what the role's owner demands of others (`ExternalId`).
    ///   - seconds: wanted life of the keys; `nil`: AWS's default.
    public init(
        _ identity: Identity, region: String, role: String? = nil, session: String = "heimdallr",
        externalID: String? = nil, seconds: Int? = nil
    ) {
        (self.identity, self.region, self.role) = (identity, region, role)
        (self.session, self.externalID, self.seconds) = (session, externalID, seconds)
    }

    /// Returns nothing: the request is no form of RFC 6749.
    public func parameters() -> [FormParameter] { [] }

    /// Parser of STS's XML.
    public var parser: any OAuthAccessTokenParser { STSParser() }

    /// Returns the request and its secrets.
    /// - Throws: the provider's error, or `SecretProviderError`.
    public func message(for request: GrantRequest) async throws -> (message: HeimdallrHTTPRequest, secrets: [Secret]) {
        var pairs = [("Version", "2011-06-15"), ("Action", action)]
        if let role { pairs += [("RoleArn", role), ("RoleSessionName", session)] }
        if let externalID { pairs.append(("ExternalId", externalID)) }
        if let seconds { pairs.append(("DurationSeconds", String(seconds))) }
        let form = pairs.map { "\($0)=\(PercentEncoding.uri.encode($1))" }.joined(separator: "&")
        switch identity {
        case .webIdentity(let provider):
            let token = try await provider.secret()
            var encoded = SecretWriter(capacity: token.count)
            token.withSpan { token in PercentEncoding.uri.encode(token) { encoded.append($0) } }
            let body = Secret(form + "&WebIdentityToken=", before: encoded.finish())
            return (Self.message(request.tokenEndpoint, [], body), [token])
        case .keys(let id, let secret, let session):
            let (id, secret) = (try await id.secret(), try await secret.secret())
            let token = try await session?.secret()
            let fields = try signed(Secret(form), request.tokenEndpoint, id, secret, token ?? Secret(""))
            return (Self.message(request.tokenEndpoint, fields, Secret(form)), [secret] + (token.map { [$0] } ?? []))
        }
    }

    private var action: String {
        if case .webIdentity = identity { return "AssumeRoleWithWebIdentity" }
        return role == nil ? "GetSessionToken" : "AssumeRole"
    }

    private static let formType = "application/x-www-form-urlencoded; charset=utf-8"

    private static func message(_ url: String, _ fields: [HeimdallrHTTPField], _ body: Secret) -> HeimdallrHTTPRequest {
        HeimdallrHTTPRequest(
            method: "POST", url: url, headers: fields + [.init(name: "Content-Type", value: formType)], content: body)
    }

    private func signed(
        _ body: Secret, _ url: String, _ id: Secret, _ secret: Secret, _ token: Secret
    ) throws -> [HeimdallrHTTPField] {
        guard let parts = try? WebURL(url) else { throw SecretProviderError("the token endpoint's URL is malformed") }
        let keys = secret.withSpan { secret in
            token.withSpan { SigningKeys(accessKeyID: id.revealedBytes, secret: secret, token: $0) }
        }
        let date = RequestSigner.date(RequestSigner.now())
        let digest = try body.withSpan { body in
            let digest = try PayloadDigest()
            try digest.update(body)
            return try digest.finish()
        }
        var head = RequestSigner.Request(
            method: Array("POST".utf8), target: SignableTarget(Array(parts.target.utf8).span), payload: digest,
            namesPayload: false)
        let host = parts.authority.without(defaultPortOf: parts.scheme).description
        head.fields = [
            (Array("host".utf8), Array(host.utf8)), (Array("content-type".utf8), Array(Self.formType.utf8)),
        ]
        let signature = try RequestSigner(region: region, service: "sts").sign(head, with: keys, date: date)
        var fields = [
            HeimdallrHTTPField(name: "X-Amz-Date", value: String(decoding: date, as: UTF8.self)),
            HeimdallrHTTPField(name: "Authorization", secret: Secret(signature)),
        ]
        if !token.isEmpty { fields.append(.init(name: "X-Amz-Security-Token", secret: token)) }
        return fields
    }
}

/// Reads the `Credentials` of STS's answer. It is XML with these names once, whose values need no escapes.
private struct STSParser: OAuthAccessTokenParser {
    func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse {
        func text(_ name: String) throws(TokenResponseError) -> String {
            let (open, close) = (Array("<\(name)>".utf8), Array("</\(name)>".utf8))
            guard let start = body.firstRange(of: open)?.upperBound,
                let end = body[start...].firstRange(of: close)?.lowerBound
            else { throw .notAnObject }
            let value = String(decoding: body[start..<end], as: UTF8.self)
            guard !value.isEmpty, value.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"<>&".utf8.contains($0) })
            else { throw .notAnObject }
            return value
        }
        guard !body.isEmpty else { throw .emptyBody }
        var response = TokenResponse(
            accessToken: Secret(try text("SessionToken")), tokenType: "Bearer",
            extra: [
                "AccessKeyId": .string(try text("AccessKeyId")),
                "SecretAccessKey": .string(try text("SecretAccessKey")),
            ])
        guard let end = RFC3339.seconds(try text("Expiration")) else { throw .notAnObject }
        response.expiresIn = Double(Int64(end) - WallClock.now())
        return response
    }
}
