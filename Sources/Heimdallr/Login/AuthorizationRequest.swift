internal import Cryptography
internal import WireText

/// Use of PKCE (RFC 7636) in logins at a browser.
public enum PKCE: String, Sendable, Hashable, CaseIterable {
    /// The server supports S256, even if its metadata has no list of methods.
    case s256 = "S256"
    /// No PKCE, for a confidential client of a server that refuses `code_verifier`. RFC 9700 advises against it.
    case off
}

/// Parameters for the authorization endpoint, random for each login: RFC 6749 sections 4.1.1 and 4.2.1, RFC 7636.
struct AuthorizationRequest: Sendable {
    var responseType: String
    var state: String
    var nonce: String?
    /// The PKCE verifier; `nil` for the implicit grant, and without PKCE.
    var verifier: Secret?
    var parameters: [FormParameter]

    /// - Parameters:
    ///   - fixed: parameters of the configuration, such as scope, audience and resource.
    ///   - wantsIDToken: whether to send a `nonce`, which the id token must contain. For id tokens of the
    ///     implicit grant, OpenID Connect requires it (Core section 3.2.2.1).
    ///   - keyThumbprint: thumbprint of the key to which the code is bound (RFC 9449 section 10).
    /// - Throws: `CryptographyError` if there is no randomness.
    init(
        _ method: LoginMethod, client: String, redirectURI: String, fixed: [FormParameter], wantsIDToken: Bool,
        usesPKCE: Bool = true, keyThumbprint: String? = nil
    ) throws(CryptographyError) {
        state = try Self.random()
        responseType = method == .implicit ? "token" : "code"
        parameters = [
            FormParameter("response_type", responseType),
            FormParameter("client_id", client), FormParameter("redirect_uri", redirectURI),
            FormParameter("state", state),
        ]
        if method == .browser, usesPKCE {
            let text = try Self.random()
            verifier = Secret(text)
            parameters += [
                FormParameter("code_challenge", try Self.challenge(for: text)),
                FormParameter("code_challenge_method", "S256"),
            ]
        }
        if let keyThumbprint, method == .browser { parameters.append(FormParameter("dpop_jkt", keyThumbprint)) }
        if wantsIDToken {
            let nonce = try Self.random()
            self.nonce = nonce
            parameters.append(FormParameter("nonce", nonce))
        }
        parameters += fixed
    }

    /// Returns the PKCE challenge: RFC 7636 section 4.2.
    static func challenge(for verifier: String) throws(CryptographyError) -> String {
        Base64.encode(try Digest.sha256(Array(verifier.utf8)), alphabet: .url)
    }

    /// Returns 256 random bits in 43 characters.
    private static func random() throws(CryptographyError) -> String {
        Base64.encode(try RandomBytes.make(32), alphabet: .url)
    }

    /// Returns the endpoint's URL, with its own query (RFC 6749 section 3.1) and these parameters. A space is `%20`.
    static func url(_ endpoint: String, _ parameters: [FormParameter]) -> String {
        let pairs = parameters.map { parameter in
            let value =
                switch parameter.value {
                case .plain(let text): PercentEncoding.uri.encode(text)
                case .secret(let secret): PercentEncoding.uri.encode(secret.revealedBytes)
                }
            return "\(PercentEncoding.uri.encode(parameter.name))=\(value)"
        }
        let joint = endpoint.contains("?") ? (endpoint.hasSuffix("?") || endpoint.hasSuffix("&") ? "" : "&") : "?"
        return endpoint + joint + pairs.joined(separator: "&")
    }
}
