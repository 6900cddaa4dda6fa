extension TokenRequests {
    init(
        _ configuration: HeimdallrConfiguration, _ credentials: any OAuthClientCredentials,
        _ grant: any OAuthAuthorizationGrant, _ parser: any OAuthAccessTokenParser, _ httpClient: LimitedHTTPClient,
        _ clock: HeimdallrClock
    ) {
        settings = configuration
        self.grant = grant
        let nested: (any OAuthAccessTokenParser)? = configuration.tokenMember.map {
            OAuthAccessTokenDefaultParser(member: $0)
        }
        self.parser = grant.ownRequest?.parser ?? nested ?? parser
        self.httpClient = httpClient
        binding = configuration.dpop.map { DPoPBinding($0, wallClock: clock.wallClock) }
        let enroller = configuration.enrolment.map {
            Enroller(
                $0, configured: credentials, allowPlaintext: configuration.allowPlaintext,
                headers: configuration.headers,
                httpClient: httpClient, clock: clock)
        }
        self.enroller = enroller
        self.credentials =
            if let enroller { EnrolledCredentials(enroller: enroller) } else { credentials }
        directory = EndpointDirectory(
            configuration: configuration, httpClient: httpClient, clock: clock,
            issuer: { enroller == nil ? configuration.issuer : enroller?.issuer })
    }
}
