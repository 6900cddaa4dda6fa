import Heimdallr
import Testing
import TestSupport

/// A client of a loopback endpoint, as most tests want it.
func makeClient(
    _ endpoint: TokenEndpoint, name: String = "billing",
    credentials: any OAuthClientCredentials = OAuthClientSecretCredentials(
        identifier: "username", secret: Secret("password")),
    grant: any OAuthAuthorizationGrant = ClientCredentialsGrant(),
    store: any OAuthAccessTokenStore = OAuthAccessTokenMemoryStore(), clock: HeimdallrClock = .system,
    httpClient: any HeimdallrHTTPClient = LoopbackHTTPClient(), limiter: TokenRequestLimiter = .shared,
    _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
) throws -> Heimdallr {
    var configuration = HeimdallrConfiguration(tokenEndpoint: endpoint.url)
    configuration.allowPlaintext = true
    change(&configuration)
    return try Heimdallr(
        name: name, configuration: configuration, credentials: credentials, grant: grant,
        httpClient: httpClient, store: store, limiter: limiter, clock: clock)
}

/// The record's name of a client that `makeClient` makes.
func recordName(
    _ endpoint: String, name: String = "billing", id: String = "username"
) -> String {
    RecordName(
        client: name, configuration: HeimdallrConfiguration(tokenEndpoint: endpoint),
        credentials: OAuthClientSecretCredentials(identifier: id), grant: ClientCredentialsGrant()
    ).description
}

extension Heimdallr {
    /// The error of a wait that must fail. On a `ManualClock` the wait ends with the first failure that can't be mended
    /// within `limit`, however slow the machine is.
    func refusal(
        waiting limit: Duration = .milliseconds(300), sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HeimdallrError {
        try #require(
            await #expect(throws: HeimdallrError.self, sourceLocation: sourceLocation) {
                try await accessToken(waiting: limit)
            }, sourceLocation: sourceLocation)
    }
}

/// A store that records its calls, and fails on demand.
actor RecordingStore: OAuthAccessTokenStore {
    private(set) var records: [String: TokenRecord] = [:]
    private(set) var saves: [TokenRecord] = []
    private(set) var removals = 0
    var saveFault: TokenStoreError?
    var loadFault: TokenStoreError?
    private var held: [CheckedContinuation<Void, Never>] = []
    private var holdsSaves = false

    init(_ records: [String: TokenRecord] = [:]) { self.records = records }

    func load(client: String) async throws -> TokenRecord? {
        if let loadFault { throw loadFault }
        return records[Self.key(client)]
    }

    func save(_ record: TokenRecord, client: String) async throws {
        if holdsSaves { await withCheckedContinuation { held.append($0) } }
        saves.append(record)
        if let saveFault { throw saveFault }
        records[Self.key(client)] = record
    }

    func remove(client: String) async throws {
        removals += 1
        records[Self.key(client)] = nil
    }

    /// Tests find records by the client's name alone.
    private static func key(_ name: String) -> String { RecordName.client(of: name) ?? name }

    func failSaves(_ fault: TokenStoreError?) { saveFault = fault }
    func failLoads(_ fault: TokenStoreError?) { loadFault = fault }

    /// Saves wait until `releaseSaves`.
    func holdSaves() { holdsSaves = true }

    /// Whether a save waits.
    var isHeld: Bool { !held.isEmpty }

    func releaseSaves() {
        holdsSaves = false
        for continuation in held { continuation.resume() }
        held = []
    }
}
