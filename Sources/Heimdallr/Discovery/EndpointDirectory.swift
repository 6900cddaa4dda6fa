import Synchronization

/// Addresses of a server, from the configuration or from the issuer's metadata. The metadata is kept for a day, and is
/// fetched again when an address seems wrong. One fetch at a time serves all callers.
final class EndpointDirectory: Sendable {
    private let configuration: HeimdallrConfiguration
    private let httpClient: any HeimdallrHTTPClient
    private let clock: HeimdallrClock
    private let state = Mutex(State())

    private struct State {
        var metadata: ServerMetadata?
        var fetchedAt: ContinuousClock.Instant?
        /// An endpoint did not answer: the server may have moved it.
        var isDoubtful = false
        var attempt: (at: ContinuousClock.Instant, fault: DiscoveryFault?)?
        var task: Task<Result<ServerMetadata, DiscoveryFault>, Never>?
    }

    static let longevity = Duration.seconds(24 * 3600)
    /// Between two questions, while there is no answer and once there is one.
    static let pauses = (without: Duration.seconds(1), with: Duration.seconds(60))
    static let maxDocumentBytes = 256 * 1024

    init(configuration: HeimdallrConfiguration, httpClient: any HeimdallrHTTPClient, clock: HeimdallrClock) {
        self.configuration = configuration
        self.httpClient = httpClient
        self.clock = clock
    }

    /// - Throws: `DiscoveryFault`; `.missing` also when no issuer is configured.
    func url(_ endpoint: Endpoint) async throws(DiscoveryFault) -> String {
        if let url = configured(endpoint) { return url }
        guard let metadata = try await metadata() else { throw .missing(endpoint.rawValue) }
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
        case .keys, .userInfo: nil
        }
    }

    /// Metadata of the issuer; `nil` when none is configured.
    func metadata() async throws(DiscoveryFault) -> ServerMetadata? {
        guard let issuer = configuration.issuer else { return nil }
        let now = clock.now()
        let (task, kept, fault) = state.withLock { state in
            let isStale = state.isDoubtful || state.fetchedAt.map { now - $0 > Self.longevity } ?? true
            if let task = state.task { return (isStale ? task : nil, state.metadata, nil as DiscoveryFault?) }
            guard isStale else { return (nil, state.metadata, nil) }
            let pause = state.metadata == nil ? Self.pauses.without : Self.pauses.with
            if let attempt = state.attempt, now - attempt.at < pause {
                return (nil, state.metadata, attempt.fault)
            }
            let task = Task.detached { [self] in await ask(issuer) }
            state.task = task
            return (task, state.metadata, nil)
        }
        guard let task else {
            if let kept { return kept }
            throw fault ?? .malformed
        }
        switch await task.value {
        case .success(let metadata): return metadata
        case .failure(let fault):
            // Yesterday's metadata is better than none.
            if let kept { return kept }
            throw fault
        }
    }

    /// A request to an address of the metadata failed in a way that a moved endpoint would explain.
    func doubt() {
        state.withLock { $0.isDoubtful = true }
    }

    private func ask(_ issuer: String) async -> Result<ServerMetadata, DiscoveryFault> {
        let result = await fetch(issuer)
        let now = clock.now()
        state.withLock { state in
            state.task = nil
            switch result {
            case .success(let metadata):
                state.metadata = metadata
                state.fetchedAt = now
                state.isDoubtful = false
                state.attempt = (now, nil)
            case .failure(let fault):
                state.attempt = (now, fault)
            }
        }
        return result
    }

    /// Both addresses together take no longer than one token request may.
    private func fetch(_ issuer: String) async -> Result<ServerMetadata, DiscoveryFault> {
        let deadline = clock.now() + configuration.timeout
        var fault = DiscoveryFault.malformed
        for (index, address) in ServerMetadata.addresses(of: issuer).enumerated() {
            let left = clock.now().duration(to: deadline)
            guard left > .zero else { return .failure(.network(.timeout)) }
            do throws(DiscoveryFault) {
                return .success(try ServerMetadata(try await document(at: address, within: left), issuer: issuer))
            } catch {
                // A server that can't be reached at one address can't at the other.
                if case .network = error { return .failure(error) }
                // A document that is there says more than one that is not.
                if case .status = error, index > 0 { continue }
                fault = error
            }
        }
        return .failure(fault)
    }

    /// Fetches a document of this server.
    /// - Parameter credential: a field to send, for documents that require a token.
    func document(
        at url: String, within timeout: Duration, credential: HeimdallrHTTPField? = nil
    ) async throws(DiscoveryFault) -> [UInt8] {
        let request = HeimdallrHTTPRequest(
            url: url,
            headers: [HeimdallrHTTPField(name: "Accept", value: "application/json")] + (credential.map { [$0] } ?? []),
            timeout: timeout, maxBodyBytes: Self.maxDocumentBytes)
        let response: HeimdallrHTTPResponse
        do {
            response = try await httpClient.send(request)
        } catch {
            throw .network(error as? HeimdallrHTTPClientError ?? .other)
        }
        guard (200..<300).contains(response.status) else { throw .status(response.status) }
        return response.body
    }
}

/// Fault of the server's metadata (RFC 8414, OpenID Connect Discovery). The texts are fixed sentences.
public enum DiscoveryFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// No answer came.
    case network(HeimdallrHTTPClientError)
    /// Neither well-known address has a document: the HTTP status of the last answer.
    case status(Int)
    /// The document is not a JSON object, or a member of it has the wrong type.
    case malformed
    /// The document names another issuer than the configuration: that issuer, made printable.
    case otherIssuer(String)
    /// Neither the document nor the configuration has an endpoint of this name, such as `token_endpoint`.
    case missing(String)
    /// The endpoint of this name is no absolute https:// URL, and no http:// one that `allowPlaintext` permits.
    case unusable(String)

    public var description: String {
        switch self {
        case .network(let error): "the server's metadata could not be had: \(error)"
        case .status(let status):
            "the server's metadata could not be had (\(status)): check `issuer`, or write the endpoints themselves"
        case .malformed: "the server's metadata is not a JSON object of endpoints: check `issuer`"
        case .otherIssuer(let named):
            "the server's metadata belongs to another issuer, \(named): write `issuer` exactly as the server does"
        case .missing(Endpoint.keys.rawValue): "the server's metadata has no jwks_uri, so no id token can be checked"
        case .missing(let name): "the server's metadata has no \(name): write it in the configuration"
        case .unusable(let name):
            "the \(name) of the server's metadata is not an https:// URL; http:// needs `allow_plaintext`"
        }
    }
}
