public import Heimdallr
import WireText

/// Advice after a failed token request or sign-in. The sentences are fixed, except for addresses, and names that a
/// server sent.
public struct Advice: Sendable {
    let client: HeimdallrStatus?
    let signIn: SignInWay

    init(_ signIn: SignInWay) {
        client = signIn.status
        self.signIn = signIn
    }

    /// Advice for a client that can't sign in at this proxy.
    public init(_ client: HeimdallrStatus) {
        self.init(SignInWay(client: client.client, method: client.loginMethod, url: nil, status: client))
    }

    /// Note: the record stored for the client belongs to another server or account.
    public static let foreignRecord =
        "the stored record belongs to another token endpoint, issuer, client_id or account; it stays and is not used"

    public func sentence(for error: HeimdallrError) -> String {
        switch error {
        case .tokenEndpointUnavailable(let fault, _), .clientRefused(let fault, _): sentence(for: fault)
        case .rejectedByResource:
            "the API refuses the token: compare this client's audience, resource and scope with the API's requirements"
        case .needsAuthentication: signIn.advice
        case .deadlineExceeded: "check that the token endpoint answers within `token_wait` and the client's `timeout`"
        case .cancelled, .stopped: "send the request again when the proxy has restarted"
        }
    }

    // MARK: The token endpoint

    func sentence(for fault: TokenEndpointFault) -> String {
        switch fault {
        case .network(let error):
            sentence(for: error, of: address) + (client?.enrolment == nil ? "" : privateHint(error))
        case .status(let status, _): sentence(forStatus: status)
        case .webPage: betweenMachine
        case .limited: "wait; the proxy tries again"
        case .redirect: "\(wrongAddress); the address redirects, and secrets don't follow redirects"
        case .answer(let error): sentence(for: error)
        case .refused(let error): sentence(for: error)
        case .secret: "write the secret to the source that the configuration names"
        case .store(let error): Self.sentence(for: error)
        case .discovery(let fault): sentence(for: fault)
        case .stuck: "wait; the proxy tries again"
        }
    }

    /// Advice for a store in a folder or a database.
    public static func sentence(for error: TokenStoreError) -> String {
        if let advice = error.advice { return advice }
        return switch error.kind {
        case .unreachable:
            "check that the database runs and that `store.connection` is right; remove nothing: the records still exist"
        case .busy: "wait; the proxy tries again. If the store stays busy, find the other process that uses the store"
        case .unreadable:
            "write the key that sealed the record into `store`; only if that key is lost, remove the record, and sign "
                + "the client in again"
        case .misconfigured: "correct `store` in the configuration"
        case .superseded: "wait; the proxy uses the later record"
        case .fault: "check that the store can be written: the disk, and the owner of the folder"
        }
    }

    /// Name of the endpoint that was asked last.
    private var endpoint: String { client?.lastEndpoint ?? "token_endpoint" }

    private var address: String { client?.lastAddress.map { "the address \($0)" } ?? "the host name in token_endpoint" }

    private var wrongAddress: String {
        guard let address = client?.lastAddress else {
            return "check that token_endpoint is the address of a token endpoint"
        }
        return "check the address, \(address): "
            + (client?.issuer == nil
                ? "it is \(endpoint) in the configuration"
                : "it may be wrong in the configuration, or in the issuer's metadata")
    }

    package func sentence(for error: HeimdallrHTTPClientError, of server: String) -> String {
        switch error {
        case .dns: "check \(server), and name resolution"
        case .shortage(_, let remedy): remedy
        case .tls(let words): "\(TLSFault(words: words).advice(.authorizationServer)) (\(server))"
        case .nextProxy(407): Self.nextProxyLogin
        case .nextProxy: "check `proxy` of this client: the next proxy refuses, or can't be reached"
        case .connect, .cut: "check that the server runs and can be reached from here: \(server)"
        case .timeout: "check that the server answers in time (\(server)); `timeout` is its limit"
        case .http2Only(let isSecure):
            "\(TLSFault.http2Advice(.authorizationServer, isSecure: isSecure)) (\(server))"
        case .bodyTooLarge, .other: wrongAddress
        }
    }

    private static let nextProxyLogin =
        "the next proxy requires a login, or refuses that of `proxy`: write http://NAME:PASSWORD@HOST:PORT there, or "
        + "{url: …, auth: …} for another method, or let the proxy's operator admit this machine"

    private func sentence(forStatus status: Int) -> String {
        switch status {
        case 407: Self.nextProxyLogin
        case 401, 403: wrongSecret
        case 408, 429, 500...: "wait; the proxy tries again"
        case 404, 405, 410, 501: wrongAddress
        default: "\(wrongAddress); and compare this client's settings with the server's requirements"
        }
    }

    private func sentence(for error: TokenResponseError) -> String {
        switch error {
        case .unknownTokenType(let type):
            "if the API takes such a token as Bearer, write `treat_as_bearer: [\(type)]`; else this server's tokens can't "
                + "be used"
        case .notBound: "switch DPoP on for this client at the server, or leave `dpop` out"
        case .notAnAccessToken:
            "write `requested_token_type: access_token`, or have the server's operator allow an exchange for access tokens"
        case .noTokenType: "if the API takes such a token as Bearer, write `default_token_type: Bearer`"
        case .alreadyExpired: "check the clocks, and the lifetime of tokens at the server"
        case .badAccessToken, .badRefreshToken: "ask the server's operator; such a token can't be sent"
        case .foreign(.webPage): betweenMachine
        case .foreign: "ask the server's operator; \(wrongAddress)"
        case .noAccessToken:
            "\(wrongAddress); if the answer holds the token elsewhere, name that member as `token_member`"
        case .noMember:
            "compare `token_member` with the server's documentation, and the scopes with those it names; or leave it out"
        case .emptyBody, .notJSON, .notAnObject: wrongAddress
        }
    }

    private var betweenMachine: String {
        "\(wrongAddress); or \(passage)"
    }

    private var passage: String {
        "have the firewall or gateway in front of the server let requests with `User-Agent: heimdallr-proxy` pass"
    }

    var wrongSecret: String {
        let text = wrongAuthentication + (endpoint == "token_endpoint" ? "" : " (\(endpoint) refused them)")
        guard let encoding = client?.ambiguousEncoding else { return text }
        let others = BasicEncoding.allCases.filter { $0 != encoding }.map(\.rawValue).joined(separator: " or ")
        return text + "; the secret has characters that servers read in different ways, so try another basic_encoding: "
            + "\(others) (it is \(encoding.rawValue) now), or `token_endpoint_auth_method: client_secret_post`"
    }

    /// Causes of a refused authentication, by its kind.
    private var wrongAuthentication: String {
        switch client?.authentication ?? .password {
        case .password: "check client_id, client_secret and token_endpoint_auth_method"
        case .none:
            "check client_id; if the server issued a secret or knows a key for it, write `client_secret` or `client_key`"
        case .sharedKey:
            "check client_id, client_secret and `client_assertion_audience`, and the clocks here and at the server"
        case .key:
            "check client_id, `client_assertion_audience` and `client_key_id` (`kid`), that the server knows this key's "
                + "public part, and the clocks here and at the server"
        case .assertion:
            "check client_id, and audience, subject and end of the assertion that the source of `client_assertion` has"
        case .certificate:
            "check client_id, and that the server knows the certificate in `tls.cert_file` for this client"
        }
    }

    private func sentence(for error: OAuthError) -> String {
        switch error.status {
        case 408, 429, 500, 502...599: return "wait; the proxy tries again"
        case 404, 405, 410, 501: return wrongAddress
        default: break
        }
        if client?.grantType == "aws" {
            return
                "compare the keys or the web identity, `role_arn`, `external_id` and `duration` with the role and its trust "
                + "policy at AWS, and the clock with the time"
        }
        if client?.grantType == "github_app" {
            return
                "compare `client_id` (the app's id), `key`, `installation`, `repositories` and `permissions` with the app's "
                + "settings at GitHub"
        }
        if error.missesScope {
            return "the server wants a scope with each request: leave `refresh_scope: none` out, and check `scope`"
        }
        return switch error.code {
        case .invalidClient,
            _ where Self.wrongClients.contains(error.code.rawValue):
            wrongSecret
        case .invalidGrant: wrongGrant
        case .invalidScope: wrongScope
        case .unauthorizedClient, .unsupportedGrantType:
            "check `grant_type`, and allow this grant type for the client at the server"
        case .invalidTarget: "check `resource` and `audience`"
        case .invalidAuthorizationDetails: "check `authorization_details`: the server rejects a type or a field"
        case .serverError, .temporarilyUnavailable: "wait; the proxy tries again"
        default:
            [401, 403].contains(error.status)
                ? wrongSecret : "compare this client's settings with the authorization server's requirements"
        }
    }

    private var wrongScope: String {
        let known = client?.scopesSupported.joined(separator: ", ") ?? ""
        return "check `scope` for typing errors, and allow these scopes for the client at the server"
            + (known.isEmpty ? "" : "; the server's metadata lists: \(ForeignText.printable(known, most: 400))")
    }

    /// Servers' own words for `invalid_client`: Slack, GitHub.
    static let wrongClients: Set = [
        "invalid_client_id", "bad_client_secret", "incorrect_client_credentials",
    ]

    var wrongGrant: String {
        switch client?.grantType {
        case "password": "check the user name and the password: the server rejects them"
        case "refresh_token": "hand in a new refresh token: \(signIn.advice)"
        case nil: "check the user name and password, or hand in a new refresh token"
        default: "check the grant's credentials; the server rejects them"
        }
    }

    // MARK: Discovery

    package func sentence(for fault: DiscoveryFault) -> String {
        let issuer = client?.issuer ?? "issuer"
        return switch fault {
        case .network(let error): sentence(for: error, of: "`issuer`, \(issuer)")
        case .unreachable(_, let address, let error): sentence(for: error, at: address)
        case .server(let issuer, .network(let error)): sentence(for: error, at: issuer)
        case .webPage, .server(_, .webPage): "write `issuer` without a typing error; or \(passage)"
        case .unusableLink, .server: "ask the operator of the API or of its server"
        case .status, .malformed:
            "check `issuer`, \(issuer): its metadata should be under /.well-known/; or write the endpoints themselves"
        case .otherIssuer(let named) where DiscoveryFault.isTemplate(named):
            "write the issuer of your own tenant, or the endpoints themselves in place of `issuer`"
        case .otherIssuer(let named): "if that is the server you mean, write `issuer: \(named)`"
        case .missing("jwks_uri"): "leave `openid` out of `scope`, or have the server's metadata name its keys"
        case .missing(let name): "write `\(name)`"
        case .unusable(let name): "write `\(name)` yourself, or ask the server's operator"
        case .noResource(300..<400, _): "write `issuer`, or ask the API's operator: redirects are not followed"
        case .noResource:
            "send the API a request through the proxy, so that its challenge names its metadata; or write `issuer`"
        case .noPKCE:
            "if the server's documentation says that it supports PKCE, write `issuer` and `pkce: S256` under the upstream's "
                + "`auto`; else ask the server's operator"
        case .unlistedIssuer(_, let listed) where listed.contains(where: DiscoveryFault.isTemplate):
            "ask the operator of the API or of its server"
        case .malformedResource, .otherResource, .noIssuer, .otherPKCE: "ask the operator of the API or of its server"
        case .severalIssuers, .unlistedIssuer: "write one of them as `issuer` under the upstream's `auto`"
        case .noGrant: "leave `grant_type` out, and sign in"
        case .scopesNotAllowed: "add the scopes that you allow to `allow_scopes`"
        case .clientWanted, .registration:
            "register a client with \(signIn.redirectURI ?? "the redirect URI") at the server, and "
                + (signIn.url.map { "type in its id at \($0)" } ?? "write `client_id` under the upstream's `auto`")
        case .registeredLately: "wait, or write `client_id` under the upstream's `auto`"
        case .movedIssuer, .clientForgotten, .notEnrolled: signIn.advice
        }
    }

    /// Advice for a failed request to an address that the API's or the server's document names.
    private func sentence(for error: HeimdallrHTTPClientError, at address: String) -> String {
        switch error {
        case .timeout:
            "try again; if \(address) stays as slow, ask its operator. A sign-in waits at most 5 s for the API's documents, and 5 s for the server's"
        case .bodyTooLarge, .other: "ask the operator of \(address)"
        default: sentence(for: error, of: address) + privateHint(error)
        }
    }

    /// Hint: by default, addresses in documents may not lead to private networks.
    private func privateHint(_ error: HeimdallrHTTPClientError) -> String {
        error == .connect ? "; a private address has to be in `proxy.private_networks`" : ""
    }
}
