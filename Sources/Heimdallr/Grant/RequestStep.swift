/// Step of a client, whose requests may have parameters of their own: `HeimdallrConfiguration.stepParameters`.
public enum RequestStep: String, Sendable, Hashable, CaseIterable {
    /// Begin of a login: at the authorization endpoint, pushed (RFC 9126), or for a device's codes (RFC 8628).
    case signIn = "sign_in"
    /// Token request of any grant that has no other step.
    case token
    /// Refresh, also with a configured refresh token: RFC 6749 section 6.
    case refresh
    /// Token exchange: RFC 8693.
    case exchange

    init(grantType: String) {
        switch grantType {
        case "refresh_token": self = .refresh
        case "urn:ietf:params:oauth:grant-type:token-exchange": self = .exchange
        default: self = .token
        }
    }
}

// The content of a step's request.
extension TokenRequests {
    /// The scope of a client's first request: of its sign-in, or of its grant.
    var requestedScope: [String] {
        let isSignIn = [.browser, .implicit, .device].contains(grant.loginMethod)
        let own = settings.stepParameters[isSignIn ? .signIn : RequestStep(grantType: grant.type)]
        guard case .plain(let text)? = own?.last(where: { $0.name == "scope" })?.value else {
            return configuration.scope
        }
        return text.split(separator: " ").map(String.init)
    }

    /// Returns the form of a step: `own`, and the configuration's parameters whose names `own` does not have, each
    /// `resource` in any case. The step's own parameters replace all others of their names; an empty one only removes
    /// them (RFC 6749 section 3.2).
    func form(of step: RequestStep, _ own: [FormParameter], scope: [String]) -> [FormParameter] {
        let configuration = configuration
        let fixed = [
            ("scope", scope.isEmpty ? nil : scope.joined(separator: " ")), ("audience", configuration.audience),
            ("authorization_details", configuration.authorizationDetailsText),
        ].compactMap { name, value in value.map { FormParameter(name, $0) } }
        let taken = Set((own + fixed).map(\.name))
        let form =
            own + fixed.filter { parameter in !own.contains { $0.name == parameter.name } }
            + configuration.resource.map { FormParameter("resource", $0) }
            + configuration.parameters.filter { !taken.contains($0.name) }
        guard let special = configuration.stepParameters[step] else { return form }
        let replaced = Set(special.map(\.name))
        return form.filter { !replaced.contains($0.name) } + special.filter { $0.value != .plain("") }
    }
}
