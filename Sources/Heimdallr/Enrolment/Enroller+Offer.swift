internal import HTTPMessage
import Synchronization
internal import WireText

// Finds the authorization server and the client for an API.
extension Enroller {
    /// Returns the plan of a sign-in. Reads the metadata of the API, then the metadata of the authorization server.
    /// - Parameters:
    ///   - grant: the grant type of the first token.
    ///   - redirectURI: redirect URI of the sign-in; `nil`: no person signs in.
    /// - Throws: `DiscoveryFault` for the first failure.
    func offer(
        _ directory: EndpointDirectory, grant: String, redirectURI: String?
    ) async throws(DiscoveryFault) -> SignInOffer {
        do throws(DiscoveryFault) {
            let offer = try await makeOffer(directory, grant, redirectURI)
            state.withLock { ($0.offer, $0.fault) = (offer, nil) }
            return offer
        } catch {
            note(error)
            throw error
        }
    }

    private func makeOffer(
        _ directory: EndpointDirectory, _ grant: String, _ redirectURI: String?
    ) async throws(DiscoveryFault) -> SignInOffer {
        let document = try await resource(directory)
        var issuer: String
        if let document {
            issuer = try document.metadata.issuer(pinned: settings.issuer)
        } else {
            guard let pinned = settings.issuer else { throw .noIssuer }
            issuer = pinned
        }
        guard WebURL(issuer, allowPlaintext: allowPlaintext).map({ $0.query == nil }) == true else {
            throw .unusableLink("issuer", ForeignText.printable(issuer))
        }
        // A configured client belongs to the last sign-in's server, unless the configured issuer is another server.
        if !configured.identifier.isEmpty, settings.clientDocument == nil,
            !(settings.issuer.map { ServerMetadata.isSame($0, issuer) } ?? false),
            let former = enrolment?.issuer, !ServerMetadata.isSame(former, issuer)
        {
            throw .moved(from: former, to: issuer)
        }
        let (metadata, browser) = try await server(issuer, isNamed: document != nil, directory, redirectURI)
        issuer = metadata.issuer
        if redirectURI == nil, let offered = metadata.grantTypes, !offered.contains(grant) { throw .noGrant(grant) }
        let stepUp = stepUp
        let isKnown = enrolment.map { ServerMetadata.isSame($0.issuer, issuer) } ?? false
        let granted = stepUp.scopes.isEmpty || !isKnown ? [] : enrolment?.scope ?? []
        let scope = try ScopeChoice(
            challenged: challenge?.scope, ofResource: document?.metadata.scopes,
            ofServer: redirectURI == nil ? [] : metadata.scopes, further: granted + stepUp.scopes,
            allowed: settings.allowedScopes
        ).scopes()
        return SignInOffer(
            resource: document?.metadata.resource, issuer: issuer, scope: scope, authorizationEndpoint: browser,
            foreignEndpoints: Self.foreign(metadata, issuer), client: client(at: issuer, metadata, redirectURI),
            document: document?.address, acrValues: stepUp.acrValues, maxAge: stepUp.maxAge, metadata: metadata)
    }

    /// Returns the metadata of a server, and the authorization endpoint; without `redirectURI`, an empty endpoint.
    /// - Parameter isNamed: whether the API names the server.
    private func server(
        _ issuer: String, isNamed: Bool, _ directory: EndpointDirectory, _ redirectURI: String?
    ) async throws(DiscoveryFault) -> (ServerMetadata, browser: String) {
        do throws(DiscoveryFault) {
            let metadata = try await directory.metadata(of: issuer)
            var browser = ""
            if redirectURI != nil {
                try checkPKCE(metadata)
                browser = try metadata.url(.authorization, allowPlaintext: allowPlaintext)
            }
            _ = try metadata.url(.token, allowPlaintext: allowPlaintext)
            return (metadata, browser)
        } catch {
            switch error {
            case .network, .status, .webPage, .malformed, .missing, .unusable:
                throw .server(ForeignText.printable(issuer), error)
            // The API would refuse another issuer.
            case .otherIssuer where isNamed: throw .server(ForeignText.printable(issuer), error)
            default: throw error
            }
        }
    }

    /// Checks that the server supports PKCE with S256. The operator's word outweighs a document's silence, but no list.
    private func checkPKCE(_ metadata: ServerMetadata) throws(DiscoveryFault) {
        if settings.pkce == .off || metadata.challengeMethods.contains("S256") { return }
        guard metadata.challengeMethods.isEmpty else { throw .otherPKCE }
        guard settings.pkce == .s256 else { throw .noPKCE }
    }

    /// Returns the endpoints whose origin is not the issuer's, as host and port. If the host is the issuer's, the
    /// scheme is included, because scheme or port differ. A subdomain counts as another host.
    private static func foreign(_ metadata: ServerMetadata, _ issuer: String) -> [String: String] {
        guard let own = try? WebURL(issuer) else { return [:] }
        var foreign: [String: String] = [:]
        for (endpoint, text) in metadata.endpoints {
            guard let url = try? WebURL(text), url.origin != own.origin else { continue }
            foreign[endpoint.rawValue] =
                url.authority.host == own.authority.host
                ? url.origin : url.authority.without(defaultPortOf: url.scheme).description
        }
        return foreign
    }

    // MARK: The API's document

    /// Returns the API's metadata; `nil`: there is none, and the issuer is configured.
    func resource(_ directory: EndpointDirectory) async throws(DiscoveryFault) -> Document? {
        let challenge = challenge
        // After a restart there is no challenge. The last sign-in's resource then selects one of the API's documents.
        let url = challenge?.url ?? enrolment?.resource ?? settings.resource
        if let kept = document(of: url, challenged: challenge?.metadata) { return kept }
        var refusal = DiscoveryFault.noResource(404, ForeignText.printable(url))
        let deadline = clock.now() + DocumentLimits.discovered.time
        for address in ResourceAddress.ofMetadata(of: url, challenged: challenge?.metadata) {
            guard WebURL(address, allowPlaintext: allowPlaintext) != nil else {
                throw .unusableLink("resource_metadata", ForeignText.printable(address))
            }
            let left = clock.now().duration(to: deadline)
            guard left > .zero else { throw .unreachable(.resource, ForeignText.printable(address), .timeout) }
            do throws(DiscoveryFault) {
                let response = try await directory.response(at: address, within: left, ofServer: false)
                let document = Document(
                    metadata: try ResourceMetadata(response.body, for: url), address: address, url: url,
                    challenged: challenge?.metadata,
                    until: clock.now() + DocumentLimits.discovered.lifetime(of: response))
                state.withLock { $0.document = document }
                return document
            } catch {
                switch error {
                case .webPage: refusal = error
                case .status(let other): refusal = .noResource(other, ForeignText.printable(address))
                case .network(let fault): throw .unreachable(.resource, ForeignText.printable(address), fault)
                default: throw error
                }
            }
        }
        guard settings.issuer != nil else { throw refusal }
        return nil
    }

    /// Checks that a configured issuer and the API's metadata agree with the issuer of the tokens in use.
    /// - Throws: `DiscoveryFault.notEnrolled`, `.movedIssuer`, or the faults of `ResourceMetadata.issuer(pinned:)`
    func confirm(_ directory: EndpointDirectory) async throws(DiscoveryFault) {
        guard let enrolment else { throw .notEnrolled }
        if let pinned = settings.issuer, !ServerMetadata.isSame(pinned, enrolment.issuer) {
            throw .moved(from: enrolment.issuer, to: pinned)
        }
        // A document is ignored if it is unavailable, or describes another resource at the same origin.
        guard let own = enrolment.resource, let document = try? await resource(directory),
            document.metadata.resource == own
        else { return }
        if document.metadata.names(enrolment.issuer) { return }
        do throws(DiscoveryFault) {
            let named = try document.metadata.issuer(pinned: settings.issuer)
            guard !ServerMetadata.isSame(named, enrolment.issuer) else { return }
            throw DiscoveryFault.moved(from: enrolment.issuer, to: named)
        } catch {
            note(error)
            throw error
        }
    }

    // MARK: The client

    /// Returns the first available client, in this order: metadata document, known, to be registered, to be entered by
    /// a person. If `clientDocument` is not set, a configured client comes first.
    private func client(
        at issuer: String, _ metadata: ServerMetadata, _ redirectURI: String?
    ) -> SignInOffer.Client {
        if let address = settings.clientDocument {
            if metadata.readsClientDocuments { return .document(address) }
        } else if !configured.identifier.isEmpty {
            return .configured(configured.identifier)
        }
        if let known = known(at: issuer), isUsable(known, redirectURI) {
            return known.source == .typed ? .typed(known.identifier) : .known(known.identifier)
        }
        return metadata.endpoints[.registration] == nil || redirectURI == nil ? .wanted : .registered
    }

    /// Returns the client of the last sign-in at this server, successful or not.
    private func known(at issuer: String) -> Enrolment.Client? {
        [begun, enrolment].compactMap { $0 }.first { ServerMetadata.isSame($0.issuer, issuer) }?.client
    }

    private func isUsable(_ client: Enrolment.Client, _ redirectURI: String?) -> Bool {
        guard client.source == .registered else { return client.source == .typed }
        return !client.isLost(at: clock.wallClock()) && redirectURI.map { client.redirectURIs.contains($0) } ?? true
    }

    /// Returns the enrolment for an offer. Registers a client if needed.
    func enrolment(for offer: SignInOffer, redirectURI: String?) async throws(DiscoveryFault) -> Enrolment {
        let client: Enrolment.Client
        switch offer.client {
        case .configured(let identifier):
            client = Enrolment.Client(identifier: identifier, method: .configured, source: .configured)
        case .document(let address):
            let hasKey = !configured.identifier.isEmpty
            client = Enrolment.Client(identifier: address, method: hasKey ? .configured : .none, source: .document)
        case .known, .typed:
            guard let known = known(at: offer.issuer) else { throw .clientWanted }
            client = known
        case .registered: client = try await register(offer, redirectURI: redirectURI ?? "")
        case .wanted: throw .clientWanted
        }
        return enrolment(for: offer, client)
    }

    private func enrolment(for offer: SignInOffer, _ client: Enrolment.Client) -> Enrolment {
        Enrolment(
            resource: offer.resource, issuer: offer.issuer, scope: offer.scope, client: client,
            registrations: registrations)
    }

    /// Registers a client (RFC 7591 section 3.1).
    private func register(_ offer: SignInOffer, redirectURI: String) async throws(DiscoveryFault) -> Enrolment.Client {
        let url = try offer.metadata.url(.registration, allowPlaintext: allowPlaintext)
        let now = clock.wallClock()
        let isLost = known(at: offer.issuer)?.isLost(at: now) ?? false
        let wait = registrations.wait(at: offer.issuer, replacing: isLost, now: now)
        guard wait == 0 else { throw waiting(wait, for: offer.issuer) }
        do throws(DiscoveryFault) {
            let client = try await registered(offer, at: url, redirectURI: redirectURI)
            state.withLock { state in
                state.registrations.succeeded(at: offer.issuer, replacing: isLost, now: now)
                state.registrationFailure = nil
            }
            return client
        } catch {
            state.withLock { state in
                state.registrations.failed(at: offer.issuer, now: now)
                state.registrationFailure =
                    if case .registration(let reason) = error { (offer.issuer, reason) } else { nil }
            }
            throw error
        }
    }

    private func registered(
        _ offer: SignInOffer, at url: String, redirectURI: String
    ) async throws(DiscoveryFault) -> Enrolment.Client {
        let method = ClientRegistration.method(offered: offer.metadata.authMethods)
        let redirectURIs = ClientRegistration.redirectURIs(redirectURI)
        let members = ClientRegistration.members(
            name: settings.clientName, redirectURIs: redirectURIs, method: method, scope: offer.scope)
        let request = HeimdallrHTTPRequest(
            method: "POST", url: url,
            headers: HeimdallrHTTPField.accepting("application/json", headers)
                + [HeimdallrHTTPField(name: "Content-Type", value: "application/json")],
            body: Array(JSON.object(members).text(.compact, escaping: .required).utf8),
            timeout: DocumentLimits.discovered.time, maxBodyBytes: DocumentLimits.discovered.bytes)
        let response: HeimdallrHTTPResponse
        do { response = try await httpClient.send(request) } catch {
            throw .unreachable(.registration, ForeignText.printable(url), error as? HeimdallrHTTPClientError ?? .other)
        }
        guard (200..<300).contains(response.status) else {
            let answer = response.content.withSpan { try? JSONParser.parse($0) }
            let words = ServerWords(answer ?? .null)
            let said = [words.code, words.detail].compactMap { $0 }
                .map { ServerText.sanitize($0, hiding: []) }.joined(separator: ": ")
            guard !response.isPageInBetween else { throw .webPage(response.status) }
            throw .registration(said.isEmpty ? "it answered \(response.status)" : "\(response.status) \(said)")
        }
        return try ClientRegistration.client(
            in: response.content, requested: method, offered: offer.metadata.authMethods, redirectURIs: redirectURIs)
    }

    func typed(identifier: String, secret: Secret?, for offer: SignInOffer) -> Enrolment {
        let method = secret == nil ? .none : ClientRegistration.secretMethod(offered: offer.metadata.authMethods)
        return enrolment(
            for: offer,
            Enrolment.Client(identifier: identifier, secret: secret, method: method, source: .typed))
    }
}
