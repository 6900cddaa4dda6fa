import Synchronization

/// Addresses of a server, from the configuration or from the issuer's metadata. The metadata is fetched again after a
/// day at most, or when an address seems wrong. If a fetch fails, the old metadata stays. All callers share one fetch.
final class EndpointDirectory: Sendable {
    private let configuration: HeimdallrConfiguration
    private let httpClient: any HeimdallrHTTPClient
    let clock: HeimdallrClock
    /// Returns the configured issuer or, for an API's server, the issuer of the enrolment.
    let issuer: @Sendable () -> String?
    private let limits: DocumentLimits
    private let state = Mutex(State())

    private struct State {
        /// The issuer to which the other properties belong.
        var issuer: String?
        var metadata: ServerMetadata?
        var lifetime = EndpointDirectory.lifetime
        var fetchedAt: ContinuousClock.Instant?
        /// Whether an endpoint failed, so that the server may have moved it.
        var isDoubtful = false
        var attempt: (at: ContinuousClock.Instant, fault: DiscoveryFault?)?
        var task: Task<Result<ServerMetadata, DiscoveryFault>, Never>?
    }

    static let lifetime = Duration.seconds(24 * 3600)
    /// Shortest time between two fetches: while no metadata is known, and after that.
    static let pauses = (without: Duration.seconds(1), with: Duration.seconds(60))

    /// - Parameter issuer: returns the issuer; `nil`: the issuer is configured.
    init(
        configuration: HeimdallrConfiguration, httpClient: any HeimdallrHTTPClient, clock: HeimdallrClock,
        issuer: (@Sendable () -> String?)? = nil
    ) {
        self.configuration = configuration
        self.httpClient = httpClient
        self.clock = clock
        self.issuer = issuer ?? { configuration.issuer }
        limits = configuration.enrolment == nil ? .configured : .discovered
    }

    /// Time limit of one token request.
    var timeout: Duration { configuration.timeout }

    /// Returns the address of an endpoint.
    /// - Parameter known: the server's metadata, if it was fetched already.
    /// - Throws: `DiscoveryFault`; `.missing` also if there is no issuer.
    func url(_ endpoint: Endpoint, in known: ServerMetadata? = nil) async throws(DiscoveryFault) -> String {
        if let url = configured(endpoint) { return url }
        var found = known
        if found == nil { found = try await metadata() }
        guard let metadata = found else { throw .missing(endpoint.rawValue) }
        return try metadata.url(
            endpoint, allowPlaintext: configuration.allowPlaintext, throughAlias: configuration.usesMutualTLS)
    }

    private func configured(_ endpoint: Endpoint) -> String? {
        switch endpoint {
        case .token: configuration.tokenEndpoint
        case .authorization: configuration.authorizationEndpoint
        case .revocation: configuration.revocationEndpoint
        case .deviceAuthorization: configuration.deviceAuthorizationEndpoint
        case .pushedAuthorization: configuration.pushedAuthorizationEndpoint
        case .keys, .userInfo, .registration: nil
        }
    }

    /// Returns the metadata of the issuer; `nil` if there is no issuer.
    func metadata() async throws(DiscoveryFault) -> ServerMetadata? {
        guard let issuer = issuer() else { return nil }
        return try await metadata(of: issuer)
    }

    /// The metadata that was read last. Never waits.
    var known: ServerMetadata? { state.withLock { $0.metadata } }

    /// Returns this issuer as its server spells it, if its metadata is known; otherwise unchanged.
    func spelling(of issuer: String?) -> String? {
        state.withLock { state in
            guard let issuer, let named = state.metadata?.issuer, ServerMetadata.isSame(named, issuer) else {
                return issuer
            }
            return named
        }
    }

    /// Returns the metadata of this issuer. Forgets the metadata of any other issuer.
    func metadata(of issuer: String) async throws(DiscoveryFault) -> ServerMetadata {
        let now = clock.now()
        let (task, kept, fault) = state.withLock { state in
            if !(state.issuer.map { ServerMetadata.isSame($0, issuer) } ?? false) { state = State(issuer: issuer) }
            let isStale = state.isDoubtful || state.fetchedAt.map { now - $0 > state.lifetime } ?? true
            let pause = state.metadata == nil ? Self.pauses.without : Self.pauses.with
            let isEarly = state.attempt.map { now - $0.at < pause } ?? false
            if isStale, state.task == nil, !isEarly { state.task = Task.detached { [self] in await ask(issuer) } }
            return (isStale ? state.task : nil, state.metadata, isStale ? state.attempt?.fault : nil)
        }
        let result = await task?.value ?? .failure(fault ?? .malformed)
        // Old metadata is better than none.
        if let kept, case .failure = result { return kept }
        return try result.get()
    }

    /// Notes that a request failed, perhaps because its endpoint has moved. The metadata is then fetched again.
    func doubt() { state.withLock { $0.isDoubtful = true } }

    private func ask(_ issuer: String) async -> Result<ServerMetadata, DiscoveryFault> {
        let result = await fetch(issuer)
        let now = clock.now()
        state.withLock { state in
            // The result is dropped if the metadata of another issuer was requested meanwhile.
            guard let current = state.issuer, ServerMetadata.isSame(current, issuer) else { return }
            switch result {
            case .success(let found):
                state = State(
                    issuer: issuer, metadata: found.metadata, lifetime: found.lifetime, fetchedAt: now,
                    attempt: (now, nil))
            case .failure(let fault):
                state.task = nil
                state.attempt = (now, fault)
            }
        }
        return result.map(\.metadata)
    }

    private typealias Found = (metadata: ServerMetadata, lifetime: Duration)

    /// Fetches the first usable document. The time limit in total is the shorter of `timeout` and `limits.time`.
    private func fetch(_ issuer: String) async -> Result<Found, DiscoveryFault> {
        let deadline = clock.now() + min(configuration.timeout, limits.time)
        var fault = DiscoveryFault.malformed
        for (index, address) in ServerMetadata.addresses(of: issuer).enumerated() {
            let left = clock.now().duration(to: deadline)
            guard left > .zero else { return .failure(.network(.timeout)) }
            do throws(DiscoveryFault) {
                let document = try await response(at: address, within: left)
                let metadata = try ServerMetadata(document.body, issuer: issuer)
                return .success((metadata, limits.lifetime(of: document)))
            } catch {
                // If one address is unreachable, the others are too, because all are on the same server.
                if case .network = error { return .failure(error) }
                // A missing document does not replace an earlier fault, because a fault in a document says more.
                switch error {
                case .status, .webPage: if index == 0 { fault = error }
                default: fault = error
                }
            }
        }
        return .failure(fault)
    }

    /// Fetches a document.
    /// - Parameters:
    ///   - credential: header field to send, for documents that require a token.
    ///   - isServer: whether the document is the server's, and the request has the configuration's header fields.
    func response(
        at url: String, within timeout: Duration, credential: HeimdallrHTTPField? = nil, ofServer isServer: Bool = true
    ) async throws(DiscoveryFault) -> HeimdallrHTTPResponse {
        let own = isServer ? configuration.headers(for: issuer()) : []
        let request = HeimdallrHTTPRequest(
            url: url,
            headers: HeimdallrHTTPField.accepting("application/json", own) + (credential.map { [$0] } ?? []),
            timeout: timeout, maxBodyBytes: limits.bytes)
        let response: HeimdallrHTTPResponse
        do {
            response = try await httpClient.send(request)
        } catch { throw .network(error as? HeimdallrHTTPClientError ?? .other) }
        guard (200..<300).contains(response.status) else {
            throw response.isPageInBetween ? .webPage(response.status) : .status(response.status)
        }
        return response
    }
}

/// Limits of documents that a server publishes.
struct DocumentLimits: Sendable {
    var bytes: Int
    var time: Duration
    /// Whether cache fields decide how long a document is kept.
    var readsCacheFields: Bool

    /// Limits for a configured server. The time limit is the client's `timeout`, but at most an hour.
    static let configured = DocumentLimits(bytes: 256 * 1024, time: .seconds(3600), readsCacheFields: false)
    /// Limits for an API, and for a server that an API names.
    static let discovered = DocumentLimits(bytes: 64 * 1024, time: .seconds(5), readsCacheFields: true)

    /// Returns the time to keep a document: a day, or with `readsCacheFields` a shorter `max-age` (RFC 9111 section
    /// 5.2.2.1). At least an hour, even with `no-store` or `no-cache`.
    func lifetime(of document: HeimdallrHTTPResponse) -> Duration {
        let longest = EndpointDirectory.lifetime
        guard readsCacheFields, let field = document.header("Cache-Control")?.lowercased() else { return longest }
        let shortest = Duration.seconds(3600)
        var life = longest
        for part in field.split(separator: ",") {
            let directive = part.drop { $0 == " " }
            if directive.hasPrefix("no-store") || directive.hasPrefix("no-cache") { return shortest }
            if directive.hasPrefix("max-age="), let seconds = Int(directive.dropFirst("max-age=".count)) {
                life = .seconds(min(max(seconds, 0), 86_400))
            }
        }
        return min(max(life, shortest), longest)
    }
}
