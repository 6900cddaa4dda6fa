internal import HTTPMessage
import Synchronization

/// Finds the authorization server of an API in the API's documents, and a client at this server. Safe on any thread.
///
/// The enrolment is stored in the client's record beside its tokens, and changes only together with them.
final class Enroller: Sendable {
    let settings: EnrolmentSettings
    /// The configured client authentication. Its identifier may be empty.
    let configured: any OAuthClientCredentials
    let allowPlaintext: Bool
    /// The operator's header fields for all requests to the server.
    let headers: [HeimdallrHTTPField]
    let httpClient: any HeimdallrHTTPClient
    let clock: HeimdallrClock
    let state = Mutex(State())

    struct State {
        /// The enrolment of the tokens.
        var enrolment: Enrolment?
        /// Whether requests use the enrolment of the sign-in in progress.
        var isSigningIn = false
        /// The client that its server no longer knows.
        var forgottenClient: (issuer: String, identifier: String)?
        var registrations = Registrations()
        /// Reason of the last registration's failure; `nil`: it succeeded, or the server did not answer.
        var registrationFailure: (issuer: String, reason: String)?
        /// The newest challenge that a missing or refused token caused.
        var challenge: ResourceChallenge?
        var stepUp = StepUp()
        var document: Document?
        var offer: SignInOffer?
        var fault: DiscoveryFault?
    }

    /// Requirements of the API for the next sign-in.
    struct StepUp: Sendable, Equatable {
        /// Scopes that the API found missing.
        var scopes: [String] = []
        var acrValues: String?
        var maxAge: Int?
        var wantsAuthentication: Bool { acrValues != nil || maxAge != nil }
    }

    /// The fetched metadata of the API.
    struct Document: Sendable {
        var metadata: ResourceMetadata
        var address: String
        /// Address of the request at the API.
        var url: String
        /// `resource_metadata` of the API's challenge, if any.
        var challenged: String?
        var until: ContinuousClock.Instant
    }

    /// Largest number of scopes that an API can require by `insufficient_scope`, in total.
    private static let maxScopes = 64

    init(
        _ settings: EnrolmentSettings, configured: any OAuthClientCredentials, allowPlaintext: Bool,
        headers: [HeimdallrHTTPField] = [], httpClient: any HeimdallrHTTPClient, clock: HeimdallrClock
    ) {
        self.settings = settings
        self.configured = (configured as? OAuthClientAssertionCredentials)?.forIssuer ?? configured
        self.allowPlaintext = allowPlaintext
        self.headers = headers
        self.httpClient = httpClient
        self.clock = clock
    }

    // MARK: The enrolment in use

    /// Enrolment of the tokens; within `signingIn`, the enrolment of the sign-in.
    var enrolment: Enrolment? {
        state.withLock { state in
            state.enrolment.map { Self.noting(state, state.isSigningIn ? $0.succeeded : $0) }
        }
    }

    /// Enrolment of the sign-in in progress; without one, of the tokens.
    var begun: Enrolment? { state.withLock { state in state.enrolment.map { Self.noting(state, $0.succeeded) } } }

    /// The issuer of the tokens in use; before a sign-in, the configured issuer.
    var issuer: String? { enrolment?.issuer ?? settings.issuer }

    /// Returns the configuration with the enrolment's issuer, scopes and resource.
    func applied(to configuration: HeimdallrConfiguration) -> HeimdallrConfiguration {
        var configuration = configuration
        let enrolment = enrolment
        configuration.issuer = enrolment?.issuer ?? settings.issuer
        configuration.headers = configuration.headers(for: configuration.issuer)
        configuration.scope = enrolment?.scope ?? []
        configuration.resource = enrolment?.resource.map { [$0] } ?? []
        return configuration
    }

    func use(_ new: Enrolment?) {
        state.withLock { state in
            state.enrolment = new
            if let new { state.registrations.add(new.registrations) }
            // A document that names neither issuer is outdated: another process has read a newer document.
            if let new, let document = state.document,
                ![new, new.succeeded].contains(where: { document.metadata.names($0.issuer) })
            {
                state.document = nil
            }
        }
    }

    private static func noting(_ state: State, _ enrolment: Enrolment) -> Enrolment {
        guard let forgotten = state.forgottenClient else { return enrolment }
        var enrolment = enrolment
        if forgotten == (enrolment.issuer, enrolment.client.identifier) { enrolment.client.isRefused = true }
        enrolment.begun = enrolment.begun.map { noting(state, $0) }
        return enrolment
    }

    /// Returns a record's enrolment, with the forgotten client marked; `nil`: no client was forgotten, or no enrolment.
    func noting(_ stored: Secret?) -> Secret? {
        state.withLock { state in
            guard state.forgottenClient != nil, let stored, let read = Enrolment(stored: stored) else { return nil }
            return Self.noting(state, read).stored
        }
    }

    /// Returns `Enrolment.digest` of the most recent sign-in.
    func digestOfBegun() throws(LoginError) -> String {
        guard let digest = begun?.digest else { throw .reconfigured }
        return digest
    }

    /// Runs a step of a sign-in with the enrolment of the sign-in. Call only in `holdingStore`.
    func signingIn<Value>(_ step: () async throws(LoginError) -> Value) async throws(LoginError) -> Value {
        state.withLock { $0.isSigningIn = true }
        defer { state.withLock { $0.isSigningIn = false } }
        return try await step()
    }

    /// Notes that the server no longer knows the client (`invalid_client`). Ignored unless the client was registered.
    /// - Parameter atSignIn: whether a person reported this for the client of the last sign-in.
    /// - Returns: whether the client was registered by RFC 7591.
    func clientRefused(atSignIn: Bool = false) -> Bool {
        state.withLock { state in
            guard let kept = state.enrolment else { return false }
            let enrolment = atSignIn || state.isSigningIn ? kept.succeeded : kept
            guard enrolment.client.source == .registered else { return false }
            state.forgottenClient = (enrolment.issuer, enrolment.client.identifier)
            return true
        }
    }

    /// Recent registrations by this process, and by other processes with the same store.
    var registrations: Registrations { state.withLock { $0.registrations } }

    /// Returns the fault of a registration that has to wait. Repeats the reason of the last failure, if there was one.
    func waiting(_ seconds: Int64, for issuer: String) -> DiscoveryFault {
        let failure = state.withLock { $0.registrationFailure }
        guard let failure, failure.issuer == issuer else { return .registeredLately(.seconds(seconds)) }
        return .registration("\(failure.reason) (the server is asked again after \(seconds) s)")
    }

    func signedIn() { state.withLock { ($0.stepUp, $0.fault, $0.forgottenClient) = (StepUp(), nil, nil) } }

    // MARK: Challenges

    var challenge: ResourceChallenge? { state.withLock { $0.challenge } }
    var stepUp: StepUp { state.withLock { $0.stepUp } }

    /// Notes a challenge. Ignores it if it comes from another origin than the API's.
    /// - Returns: whether the API has a new requirement for the person's next sign-in.
    func note(_ challenge: ResourceChallenge, hadToken: Bool) -> Bool {
        guard WebURL.origin(of: challenge.url) == WebURL.origin(of: settings.resource) else {
            return false
        }
        let now = clock.now()
        return state.withLock { state in
            let before = state.stepUp
            switch challenge.reason {
            case .token:
                if hadToken { state.document?.until = now }
                state.challenge = challenge
            case .scope:
                let new = (challenge.scope ?? []).filter { !before.scopes.contains($0) }
                state.stepUp.scopes = Array((before.scopes + new).prefix(Self.maxScopes))
            case .authentication:
                state.stepUp.acrValues = challenge.acrValues
                state.stepUp.maxAge = challenge.maxAge ?? (challenge.acrValues == nil ? 0 : nil)
                // The API may send different values with each response, so only the first challenge is new.
                return !before.wantsAuthentication
            }
            return state.stepUp != before
        }
    }

    // MARK: Documents

    func document(of url: String, challenged: String?) -> Document? {
        let now = clock.now()
        return state.withLock { state in
            guard let document = state.document, document.url == url, document.challenged == challenged,
                now < document.until
            else { return nil }
            return document
        }
    }

    func note(_ fault: DiscoveryFault) { state.withLock { $0.fault = fault } }

    var report: EnrolmentReport {
        state.withLock { state in
            EnrolmentReport(
                url: state.challenge?.url ?? settings.resource, challenged: state.challenge?.metadata,
                resource: state.enrolment?.resource ?? state.offer?.resource,
                issuer: state.enrolment?.issuer ?? state.offer?.issuer ?? settings.issuer,
                client: state.enrolment?.client.source.rawValue, document: state.document?.address,
                foreignEndpoints: state.offer?.foreignEndpoints ?? [:], missingScopes: state.stepUp.scopes,
                wantsAuthentication: state.stepUp.wantsAuthentication, fault: state.fault)
        }
    }
}

/// Authentication of the current client, which is configured, registered or entered by a person.
struct EnrolledCredentials: OAuthClientCredentials {
    let enroller: Enroller

    private var inUse: any OAuthClientCredentials {
        guard let client = enroller.enrolment?.client, client.method != .configured else { return enroller.configured }
        guard client.method != .none, let secret = client.secret else {
            return OAuthClientSecretCredentials(identifier: client.identifier)
        }
        return OAuthClientSecretCredentials(
            identifier: client.identifier, secret: secret, method: client.method == .post ? .post : .basic(.form))
    }

    var identifier: String { inUse.identifier }
    var needsTokenEndpoint: Bool { inUse.needsTokenEndpoint }
    var authentication: ClientAuthentication { inUse.authentication }

    func authenticate(_ request: inout TokenRequest) async throws { try await inUse.authenticate(&request) }
}
