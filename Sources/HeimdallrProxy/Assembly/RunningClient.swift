import Administration
import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Proxy
import Synchronization

/// The start of a client that a reload made. The start waits for the former client's token request, which may hang. So
/// the reload does not wait for the start. Any thread.
final class Beginning: Sendable {
    private let task = Mutex<Task<Void, Never>?>(nil)

    func start(_ work: @escaping @Sendable () async -> Void) { task.withLock { $0 = Task { await work() } } }

    /// Returns when the client has started, or at once if no reload made the client. After `deadline`, the start no
    /// longer waits for the former client's request.
    func wait(until deadline: ContinuousClock.Instant? = nil) async {
        guard let task = task.withLock({ $0 }) else { return }
        let alarm = deadline.map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                task.cancel()
            }
        }
        await task.value
        alarm?.cancel()
    }
}

/// One OAuth client of the running proxy, with its settings.
struct RunningClient: Sendable {
    let settings: ClientSettings
    let trustAnchors: String?
    /// Private networks that `client: auto` may reach; empty for other clients.
    let privateNetworks: [AddressBlock]
    let heimdallr: Heimdallr
    let notes: TokenRequestNotes
    /// Counts of connections to the authorization server.
    let connections: ConnectionCounts
    let store: ClientStore
    let beginning = Beginning()
    /// Writes the token into a file; `nil`: the client has none.
    let file: TokenFile?

    /// Makes the client; it sends nothing yet.
    /// - Parameter isHeld: see `ClientStore`.
    init(
        _ settings: ClientSettings, _ configuration: Configuration, _ shared: SharedObjects, isHeld: Bool
    ) throws(HeimdallrConfigurationError) {
        self.settings = settings
        trustAnchors = configuration.trustAnchorsFile
        privateNetworks = Self.privateNetworks(settings, configuration)
        notes = TokenRequestNotes()
        connections = ConnectionCounts()
        store = ClientStore(shared.stores.tokens, isHeld: isHeld)
        let held = RefusedSecrets(settings, shared.secrets)
        heimdallr = try ClientAssembly(
            settings: settings, configuration: configuration, secrets: shared.secrets,
            material: shared.files.tls[.init(settings.tls, extra: trustAnchors)], counts: connections,
            registry: shared.registry
        ).make(
            on: shared.loops[0], store: store, last: notes,
            onTokenRequest: { [notes, tokens = shared.tokens, logger = shared.logger, traces = shared.traces] report in
                tokens?.record(report)
                EventLog.write(report, to: logger)
                traces.tokenRequested(report, notes)
                if report.result == .refused { held.refused() }
            })
        file = settings.file.map { [heimdallr] in
            TokenFile($0, heimdallr, shared.logger, exported: shared.exported)
        }
    }

    /// Whether this client can stay unchanged under another configuration, in which its settings are `other`.
    func isGood(for other: ClientSettings, _ configuration: Configuration) -> Bool {
        settings == other && trustAnchors == configuration.trustAnchorsFile
            && privateNetworks == Self.privateNetworks(other, configuration)
    }

    private static func privateNetworks(_ settings: ClientSettings, _ configuration: Configuration) -> [AddressBlock] {
        settings.auto == nil ? [] : configuration.discoveryNetworks
    }
}

extension ClientSettings {
    /// Whether an access token of these settings is not valid for `other`, because the server, account, scope or
    /// resource differs.
    func losesTokens(to other: ClientSettings) -> Bool { tokenSettings != other.tokenSettings }

    /// The settings that decide which token a client gets. If a person signs in, client authentication is left out.
    fileprivate var tokenSettings: ClientSettings {
        var settings = self
        let standard = ClientSettings(name: name)
        settings.timeout = standard.timeout
        settings.refreshBefore = standard.refreshBefore
        settings.defaultExpiresIn = standard.defaultExpiresIn
        settings.tokenLifetime = standard.tokenLifetime
        settings.proxy = standard.proxy
        settings.headers = standard.headers
        settings.isExportable = standard.isExportable
        settings.file = standard.file
        settings.labels = standard.labels
        settings.basicEncoding = standard.basicEncoding
        settings.revocationEndpoint = standard.revocationEndpoint
        settings.refreshesWithScope = standard.refreshesWithScope
        settings.redirectURI = standard.redirectURI
        settings.pushedAuthorization = standard.pushedAuthorization
        settings.pkce = standard.pkce
        settings.usesIDToken = standard.usesIDToken
        settings.pushedAuthorizationEndpoint = standard.pushedAuthorizationEndpoint
        settings.tls.caFile = standard.tls.caFile
        guard needsLogin else { return settings }
        settings.clientSecret = standard.clientSecret
        settings.authMethod = standard.authMethod
        settings.tls = standard.tls
        return settings
    }
}
