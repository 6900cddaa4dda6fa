public import Heimdallr

// Advice after a failed sign-in.
extension Advice {
    /// Advice for a failed login; `nil` if the error needs none.
    public func sentence(for error: LoginError) -> String? {
        switch error {
        case .discovery(let fault): sentence(for: fault)
        case .endpoint(let fault): sentence(for: fault)
        case .refused(let error): sentence(forLogin: error)
        case .pushRefused(let error): sentence(forPush: error)
        case .idToken(.keys(let fault)): sentence(for: fault)
        case .noEndpoint("jwks_uri"): sentence(for: DiscoveryFault.missing("jwks_uri"))
        default: nil
        }
    }

    private func sentence(forLogin error: OAuthError) -> String? {
        switch error.code {
        case .invalidClient,
            _ where Self.wrongClients.contains(error.code.rawValue):
            return wrongSecret + refusedPKCE
        case .accessDenied, .serverError, .temporarilyUnavailable: return nil
        // LinkedIn's words for access_denied.
        case _ where ["user_cancelled_login", "user_cancelled_authorize"].contains(error.code.rawValue): return nil
        case .invalidGrant where client?.loginMethod == .password: return wrongGrant
        case .invalidGrant, .invalidScope, .invalidTarget: return nil
        default:
            if [401, 403].contains(error.status) { return wrongSecret }
            return registration(for: error)
                ?? "allow this sign-in for the client at the server, and compare the client's settings with the "
                + "server's message"
        }
    }

    /// Some servers answer `invalid_client` to the `code_verifier` of a confidential client (LinkedIn).
    private var refusedPKCE: String {
        client?.loginMethod == .browser && client?.authentication == .password
            ? "; if they are right, the server may refuse PKCE: `pkce: off`" : ""
    }

    private func sentence(forPush error: OAuthError) -> String {
        if error.code == .invalidClient || [401, 403].contains(error.status) { return wrongSecret }
        let direct = "if the server does not require PAR, `par: off` sends the request by the browser"
        return registration(for: error, silent: []).map { "\($0); \(direct)" }
            ?? "compare this client's settings with the server's message; \(direct)"
    }

    /// Advice to register the redirect URI, if the server's error is about that URI.
    /// - Parameter silent: codes that most likely mean the redirect URI if they come without a description.
    private func registration(for error: OAuthError, silent: [OAuthError.Code] = [.invalidRequest]) -> String? {
        let words = (error.code.rawValue + (error.detail ?? "")).lowercased()
        guard words.contains("redirect") || error.detail == nil && silent.contains(error.code) else { return nil }
        return signIn.redirectURI.map { "register \($0) at the server as the client's redirect URI" }
    }
}
