internal import WireText

// Name of the signed-in person, for id tokens without a name: OpenID Connect Core section 5.3.
extension Heimdallr {
    /// Longest wait for the name. A login must not wait longer, because the name is only displayed.
    private static let userInfoTimeout = Duration.seconds(5)

    /// Returns the person's name from the userinfo endpoint; `nil` after any fault. The login goes on without it.
    /// - Parameter subject: `sub` of the id token. An answer about another subject is ignored (section 5.3.2).
    func userInfoName(of subject: String?, _ response: TokenResponse) async -> String? {
        let directory = requests.directory
        // Only a Bearer token is sent: a token that is bound to a key would need a DPoP proof.
        guard let subject, let url = try? await directory.url(.userInfo),
            (response.tokenType ?? "Bearer").lowercased() == "bearer",
            response.accessToken.isVisible
        else { return nil }
        let credential = HeimdallrHTTPField(name: "Authorization", secret: response.accessToken.after(scheme: "Bearer"))
        let response = try? await directory.response(
            at: url, within: min(requests.configuration.timeout, Self.userInfoTimeout), credential: credential)
        guard let response, let answer = try? JSONParser.parse(response.body) else { return nil }
        let claims = Claims(answer)
        guard let named = claims.subject, named.utf8.elementsEqual(subject.utf8) else { return nil }
        return claims.personalName
    }
}
