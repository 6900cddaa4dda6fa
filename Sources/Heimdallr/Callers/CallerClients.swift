internal import Cryptography
import Synchronization
internal import WireText

/// Clients for callers whose tokens are exchanged (RFC 8693). Each caller has a separate `Heimdallr`, so one caller's
/// failure does not affect another. No caller gets another caller's token, and nothing is written to disk. Any thread.
final class CallerClients: Sendable {
    struct Blueprint: Sendable {
        let name: String
        let authenticator: any ResourceRequestAuthenticator
        let requests: TokenRequests
        let issuerKeys: IssuerKeys
        let clock: HeimdallrClock
        let settings: TokenLifeCycle.Settings
        let onTokenRequest: (@Sendable (TokenRequestReport) -> Void)?
    }

    private struct State {
        var table = CallerTable<Heimdallr>()
        var sweeper: Task<Void, Never>?
        var isStopped = false
    }

    static let maxTokenBytes = 16 * 1024
    private static let sweepPause = Duration.seconds(15)

    private let blueprint: Blueprint
    private let grant: TokenExchangeGrant
    private let state = Mutex(State())

    init(_ blueprint: Blueprint, grant: TokenExchangeGrant) {
        self.blueprint = blueprint
        self.grant = grant
    }

    deinit { state.withLock { $0.sweeper?.cancel() } }

    func client(of token: Span<UInt8>) throws(CallerRefusal) -> Heimdallr {
        guard Self.isToken(token), let caller = try? Fingerprint(token) else { throw .malformed }
        let now = blueprint.clock.now()
        let known = try state.withLock { state throws(CallerRefusal) in
            guard !state.isStopped else { throw .stopped }
            return try state.table.entry(of: caller, now: now)
        }
        guard let entry = known else { return try add(caller, Secret(token), now) }
        guard entry.isInherited, entry.client.look({ $0.fetch == nil && $0.token?.isExpired(at: now) ?? true }) else {
            return entry.client
        }
        let client = client(caller, Secret(token), entry.endsAt)
        state.withLock { $0.table.replace(caller, with: client) }
        return client
    }

    private func add(
        _ caller: Fingerprint, _ token: Secret, _ now: ContinuousClock.Instant
    ) throws(CallerRefusal) -> Heimdallr {
        var endsAt: ContinuousClock.Instant?
        if let left = TokenEnd.secondsLeft(of: token, wallClock: blueprint.clock.wallClock()) {
            guard left > 0 else { throw .expired }
            // The caller chooses this number, so it is limited against overflow.
            endsAt = now + min(.seconds(min(left, 1e9)), TokenPolicy.maxLifetime)
        }
        return try state.withLock { state throws(CallerRefusal) in
            guard !state.isStopped else { throw .stopped }
            // Another event loop may have added this caller meanwhile.
            if let entry = try state.table.entry(of: caller, now: now) { return entry.client }
            try state.table.admitNew(now: now)
            let client = client(caller, token, endsAt)
            state.table.add(client, caller, size: token.count, endsAt: endsAt, now: now) { $0.hasAccessToken }
            if state.sweeper == nil { state.sweeper = sweeper() }
            return client
        }
    }

    private func client(_ caller: Fingerprint, _ token: Secret, _ endsAt: ContinuousClock.Instant?) -> Heimdallr {
        Heimdallr(
            of: blueprint, grant.exchanging(CallerToken(token: token, endsAt: endsAt, clock: blueprint.clock)),
            CallerTokenParser(parser: blueprint.requests.parser, endsAt: endsAt)
        ) { [weak self] report in
            if report.result == .success { self?.succeeded(caller) }
        }
    }

    private func succeeded(_ caller: Fingerprint) {
        let now = blueprint.clock.now()
        state.withLock { $0.table.succeeded(caller, now: now) }
    }

    /// Returns a task that removes callers at intervals. It does not retain `self`, and ends when no caller is left.
    private func sweeper() -> Task<Void, Never> {
        Task.detached { [weak self, clock = blueprint.clock] in
            repeat {
                do { try await clock.sleep(clock.now() + Self.sweepPause) } catch { return }
            } while self?.sweep() == true
        }
    }

    /// Removes expired and unused callers. Returns whether a caller is left.
    private func sweep() -> Bool {
        let now = blueprint.clock.now()
        return state.withLock { state in
            state.table.sweep(now: now) { $0.hasAccessToken }
            if state.table.count == 0 { state.sweeper = nil }
            return state.table.count > 0
        }
    }

    /// Takes over the callers of `former`, with their tokens, requests and waiting calls. A caller gets a client with
    /// the new settings when its exchanged token has expired.
    func takeOver(_ former: CallerClients) {
        let table = former.state.withLock { state in
            defer { state.table = CallerTable() }
            return state.table
        }
        state.withLock { state in
            guard !state.isStopped else { return }
            state.table.takeOver(table)
            if state.sweeper == nil, state.table.count > 0 { state.sweeper = sweeper() }
        }
    }

    func credentialsChanged() { for client in state.withLock({ $0.table.clients }) { client.credentialsChanged() } }

    func forget() { state.withLock { $0.table.removeAll() } }

    func shutdown() {
        let clients = state.withLock { state in
            state.isStopped = true
            state.sweeper?.cancel()
            defer { state.table.removeAll() }
            return state.table.clients
        }
        for client in clients { client.shutdown() }
    }

    /// Summary for the status.
    var overview: (count: Int, hasToken: Bool, waiters: Int, lastSuccessAt: ContinuousClock.Instant?) {
        let (clients, lastSuccessAt) = state.withLock { ($0.table.clients, $0.table.lastSuccessAt) }
        let now = blueprint.clock.now()
        var (hasToken, waiters) = (false, 0)
        for client in clients {
            client.look { life in
                hasToken = hasToken || life.token.map { !$0.isExpired(at: now) } ?? false
                waiters += life.waiters.count
            }
        }
        return (clients.count, hasToken, waiters, lastSuccessAt)
    }

    /// Checks the size and the grammar (RFC 6750 section 2.1): letters, digits, `-._~+/`, and `=` at the end.
    private static func isToken(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count > 0, bytes.count <= maxTokenBytes else { return false }
        var end = bytes.count
        while end > 0, bytes[end - 1] == ASCII.equals { end -= 1 }
        guard end > 0 else { return false }
        for index in 0..<end {
            switch bytes[index] {
            case ASCII.hyphen, ASCII.dot, ASCII.underscore, ASCII.tilde, ASCII.plus, ASCII.slash: continue
            case let byte where ASCII.isAlphanumeric(byte): continue
            default: return false
            }
        }
        return true
    }
}

/// A caller's token. `secret()` throws after the token's expiry.
private struct CallerToken: SecretProvider {
    let token: Secret
    let endsAt: ContinuousClock.Instant?
    let clock: HeimdallrClock

    func secret() async throws -> Secret {
        if let endsAt, endsAt <= clock.now() { throw SecretProviderError("the caller's token has expired") }
        return token
    }
}

/// Keeps the access token of an answer, without a refresh token. It expires no later than the caller's token.
private struct CallerTokenParser: OAuthAccessTokenParser {
    let parser: any OAuthAccessTokenParser
    let endsAt: ContinuousClock.Instant?

    func parse(_ body: [UInt8]) throws(TokenResponseError) -> TokenResponse { reduced(try parser.parse(body)) }

    func parse(_ content: Secret) throws(TokenResponseError) -> TokenResponse {
        let response = try parser.parse(content)
        // Up to a thousand exchanged tokens are in memory, so their size is limited.
        guard response.accessToken.count <= CallerClients.maxTokenBytes else { throw .badAccessToken }
        return reduced(response)
    }

    private func reduced(_ whole: TokenResponse) -> TokenResponse {
        var response = TokenResponse(
            accessToken: whole.accessToken, tokenType: whole.tokenType, expiresIn: whole.expiresIn, scope: whole.scope)
        response.endsAt = endsAt
        return response
    }
}
