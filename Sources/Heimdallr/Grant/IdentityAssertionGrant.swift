internal import WireText

/// Grant that uses one sign-in for many APIs. The identity provider exchanges the person's id token for an assertion
/// (ID-JAG, RFC 8693). The API's server issues a token for this assertion (RFC 7523 section 2.1).
public struct IdentityAssertionGrant: OAuthAuthorizationGrant {
    public let type = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    public let needs = GrantNeeds.nobody
    public let namesIdentityAnew = true
    let provider: @Sendable () -> Heimdallr?

    /// - Parameter provider: returns the client at which the person is signed in, with `openid` in its scope. Called
    ///   for each token request, on any thread.
    public init(provider: @escaping @Sendable () -> Heimdallr?) { self.provider = provider }

    /// Always throws, because an assertion can be made only for a known server.
    public func parameters() throws -> [FormParameter] {
        throw SecretProviderError("this assertion can be made only for a token request")
    }

    public func parameters(for request: GrantRequest) async throws -> [FormParameter] {
        guard let provider = provider() else {
            throw SecretProviderError("the client of the identity provider is not running")
        }
        return [FormParameter("assertion", try await provider.identityAssertion(for: request))]
    }
}

extension Heimdallr {
    private static let assertionType = "urn:ietf:params:oauth:token-type:id-jag"

    /// Returns an assertion about the signed-in person for another server. If the provider refuses, renews the id token
    /// and asks once more.
    /// - Throws: `SecretProviderError`
    func identityAssertion(for request: GrantRequest) async throws -> Secret {
        guard let idToken = look({ $0.grant.signIn?.idToken }) else {
            throw Self.lasting("nobody is signed in at the identity provider: heimdallr-proxy login \(name)")
        }
        var answer = try await exchanged(idToken, for: request)
        if case .failure = answer {
            _ = try? await refreshedToken(waiting: requests.configuration.timeout)
            if let renewed = look({ $0.grant.signIn?.idToken }), renewed != idToken {
                answer = try await exchanged(renewed, for: request)
            }
        }
        do { return try answer.get() } catch { throw Self.noAssertion(TokenEndpointFault.refused(error)) }
    }

    private static func noAssertion(_ reason: any Error) -> SecretProviderError {
        lasting("the identity provider gave no assertion: \(reason)")
    }

    private static func lasting(_ text: String) -> SecretProviderError {
        var error = SecretProviderError(text)
        error.mayPass = false
        return error
    }

    /// - Returns: the assertion, or the provider's refusal.
    /// - Throws: `SecretProviderError` for failures that another id token would not change.
    private func exchanged(_ idToken: Secret, for request: GrantRequest) async throws -> Result<Secret, OAuthError> {
        var form = [
            FormParameter("subject_token", idToken),
            FormParameter("subject_token_type", TokenExchangeGrant.TokenType.idToken.rawValue),
            FormParameter("requested_token_type", Self.assertionType),
            FormParameter("audience", request.issuer ?? request.tokenEndpoint),
        ]
        form += request.resource.map { FormParameter("resource", $0) }
        if !request.scope.isEmpty { form.append(FormParameter("scope", request.scope.joined(separator: " "))) }
        let outcome: TokenLifeCycle.Outcome
        do throws(LoginError) {
            (outcome, _) = try await ask(
                form, grantType: "urn:ietf:params:oauth:grant-type:token-exchange", sendsScope: false, to: nil)
        } catch { throw Self.noAssertion(error) }
        switch outcome {
        case .response(let response):
            guard response.extra["issued_token_type"]?.string == Self.assertionType, response.accessToken.isVisible
            else {
                throw SecretProviderError("the identity provider's answer has no assertion for another server (ID-JAG)")
            }
            return .success(response.accessToken)
        case .fault(.refused(let refusal), _) where refusal.status < 500: return .failure(refusal)
        case .fault(let fault, _): throw Self.noAssertion(fault)
        case .adopted, .seedSpent: throw SecretProviderError("the identity provider gave no assertion")
        }
    }
}
