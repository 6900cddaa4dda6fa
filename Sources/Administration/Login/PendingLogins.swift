import Cryptography
import Heimdallr
import Synchronization

/// Logins under way: attempts at browsers by their `state`, and tickets by which the one who began a login asks how it went.
/// Both tables are bounded, and nothing stays longer than ten minutes, or as long as a device code lives. Where the proxies
/// of a fleet share a store, one can end what another has begun. Any thread.
package final class PendingLogins: Sendable {
    /// More at once push the oldest out.
    static let capacity = 64
    static let lifetime = Duration.seconds(600)
    /// A browser has one for each login that it has begun; more are not looked up for anybody.
    private static let mostCookies = 8
    private static let cookiePrefix = "heimdallr-login-"

    /// Who may bring the answer of an attempt.
    private enum Holder {
        /// The browser with this cookie.
        case browser(Cookie)
        /// The command with this ticket, and nobody else.
        case command
    }

    /// A browser's proof that it began the attempt.
    package struct Cookie: Sendable {
        /// An attempt of its own for each sign-in, so that two tabs don't take each other's place.
        package var name: String
        package var value: Secret

        func isAmong(_ cookies: [String: String]) -> Bool { cookies[name].map { Secret($0) == value } ?? false }
    }

    private struct Attempt {
        var attempt: LoginAttempt
        var client: Heimdallr
        var holder: Holder
        var ticket: String?
        var expiresAt: ContinuousClock.Instant
        /// An event has told of an answer that was not taken: one is enough, whoever sends how many.
        var hasToldOfRefusal = false
        /// There is a copy of it where other proxies look.
        var isShared = false
    }

    private struct State {
        var attempts: [String: Attempt] = [:]
        var tickets: [String: Ticket] = [:]
        /// Attempts that were finished, by `state`: their page may be loaded again.
        var finished: [String: Finished] = [:]
        /// The device login that the page shows, by client.
        var shown: [String: String] = [:]
        /// From our own page at one of our names to the same page at another, which a browser calls another site.
        var passes: [String: ContinuousClock.Instant] = [:]
        /// When lines of the log told of answers that belong to no client, in the last minute.
        var toldAt: [ContinuousClock.Instant] = []
    }

    /// How an attempt at a browser came out.
    private struct Finished {
        var client: String
        var cookie: Cookie
        var expiresAt: ContinuousClock.Instant
    }

    /// One login as its beginner sees it.
    package struct Ticket: Sendable {
        package enum Progress: Sendable, Equatable {
            case waiting
            case done
            case failed(String)
        }

        var client: String
        package var progress = Progress.waiting
        /// There was no token when it was issued: whichever way one comes, it is done.
        var isDoneWithAnyToken = false
        package var device: DeviceLogin?
        var expiresAt: ContinuousClock.Instant
        /// Of the attempt that is this ticket's alone.
        fileprivate var state: String?
        fileprivate var work: Task<Void, Never>?
    }

    package enum Refusal: Error, Equatable {
        /// Not known: over, too old, or of another process.
        case unknown
        /// Begun in another browser.
        case foreign
        /// Begun by a command, which waits for the address.
        case commands
    }

    private let state = Mutex(State())
    private let clock: HeimdallrClock
    /// Clients of the configuration in use.
    private let clients: @Sendable () -> [Heimdallr]
    /// `nil`: no other process can end a login of ours.
    private let shared: (any PendingLoginStore)?

    /// - Parameters:
    ///   - shared: keeps logins where the other proxies of a fleet find them.
    ///   - clients: the clients of the configuration in use. A login that a reload finds under way goes on with its successor.
    ///   - clock: the clock of the clients.
    package init(
        shared: (any PendingLoginStore)? = nil, clients: @escaping @Sendable () -> [Heimdallr] = { [] },
        clock: HeimdallrClock = .system
    ) {
        self.shared = shared
        self.clients = clients
        self.clock = clock
    }

    // MARK: At a browser

    /// - Parameter ticket: whose progress the outcome is; one that is not known counts for nothing.
    /// - Returns: where to send the browser, and the cookie it has to bring back.
    package func beginAtBrowser(
        _ client: Heimdallr, redirectURI: String, ticket: String?
    ) async throws(LoginError) -> (url: String, cookie: Cookie) {
        let cookie: Cookie
        do throws(CryptographyError) {
            cookie = Cookie(
                name: Self.cookiePrefix + (try RandomBytes.identifier()), value: Secret(try RandomBytes.identifier()))
        } catch { throw .noRandomness }
        var attempt = try await client.beginLogin(redirectURI: redirectURI)
        let isShared = await share(
            PortableLogin(attempt), key: PortableLogin.key(state: attempt.state, cookie: cookie.value),
            life: Self.lifetime)
        // A failed write may have left a copy, with which another proxy would spend the same code. Nobody knows this state
        // yet, so another one takes its place.
        if shared != nil, !isShared { attempt = try await client.beginLogin(redirectURI: redirectURI) }
        keep(attempt, client, .browser(cookie), ticket: ticket)
        if isShared { state.withLock { $0.attempts[attempt.state]?.isShared = true } }
        return (attempt.url, cookie)
    }

    /// The same for an attempt that began at another proxy of the fleet. Only the browser that began it can name it.
    /// - Parameter clients: this proxy's.
    package func takeShared(
        state key: String, cookies: [String: String], clients: [Heimdallr]
    ) async -> Taken? {
        guard let shared, !key.isEmpty else { return nil }
        for (name, value) in cookies.filter({ $0.key.hasPrefix(Self.cookiePrefix) }).prefix(Self.mostCookies) {
            let cookie = Cookie(name: name, value: Secret(value))
            guard let place = PortableLogin.key(state: key, cookie: cookie.value),
                let content = try? await shared.takePending(key: place),
                let login = PortableLogin(content, until: clock.now() + Self.lifetime),
                case .browser(let attempt) = login.kind, attempt.state == key,
                let client = clients.first(where: { $0.name == attempt.client })
            else { continue }
            return Taken(attempt: attempt, client: client, ticket: nil, cookie: cookie)
        }
        return nil
    }

    /// Where it can't be kept, it can still be ended here.
    /// - Returns: whether it is there.
    @discardableResult
    private func share(_ login: PortableLogin, key: String?, life: Duration) async -> Bool {
        guard let shared, let key else { return false }
        do { try await shared.putPending(login.content, key: key, life: life) } catch { return false }
        return true
    }

    /// Takes the attempt that `state` belongs to out of the table, so that nobody finishes it twice. One that another
    /// browser asks for stays, for the browser that began it.
    /// - Parameter cookies: what the browser sent, by name.
    package func take(
        state key: String, cookies: [String: String], now: ContinuousClock.Instant? = nil
    ) throws(Refusal) -> Taken {
        let now = now ?? clock.now()
        let found = state.withLock { state -> Result<Attempt, Refusal> in
            guard let attempt = state.attempts[key], attempt.expiresAt > now else { return .failure(.unknown) }
            guard case .browser(let cookie) = attempt.holder else { return .failure(.commands) }
            guard cookie.isAmong(cookies) else { return .failure(.foreign) }
            state.attempts[key] = nil
            return .success(attempt)
        }
        if case .failure(.foreign) = found { tell(.foreignBrowser, of: [key]) }
        let attempt = try found.get()
        var taken = Taken(attempt: attempt.attempt, client: attempt.client, ticket: attempt.ticket)
        if case .browser(let cookie) = attempt.holder { taken.cookie = cookie }
        taken.isShared = attempt.isShared
        return taken
    }

    /// For a browser that loads the page again on which a sign-in ended well.
    /// - Returns: the client's name, to the browser that signed it in and to nobody else.
    func finished(
        state key: String, cookies: [String: String], now: ContinuousClock.Instant? = nil
    ) -> String? {
        let now = now ?? clock.now()
        return state.withLock { state in
            guard let finished = state.finished[key], finished.expiresAt > now, finished.cookie.isAmong(cookies)
            else { return nil }
            return finished.client
        }
    }

    /// An attempt that is nobody else's any more.
    package struct Taken: Sendable {
        package let attempt: LoginAttempt
        package let client: Heimdallr
        fileprivate let ticket: String?
        fileprivate var cookie: Cookie?
        /// There is a copy of it where other proxies look.
        fileprivate var isShared = false
    }

    /// Whether the attempt's answer stands behind `#`, where only a script sees it.
    func awaitsFragment(state key: String) -> Bool {
        state.withLock { $0.attempts[key]?.client.loginMethod == .implicit }
    }

    /// An error came without a state. The attempts of this browser stay as they are; that somebody said no is told.
    /// - Returns: whether it should be told otherwise: it belongs to no attempt, and not too many did.
    func refused(_ error: OAuthError, cookies: [String: String], now: ContinuousClock.Instant? = nil) -> Bool {
        let now = now ?? clock.now()
        let keys = state.withLock { state in
            state.attempts.filter { _, attempt in
                guard case .browser(let cookie) = attempt.holder, attempt.expiresAt > now else { return false }
                return cookie.isAmong(cookies)
            }.map(\.key)
        }
        tell(.refused(error), of: keys)
        return keys.isEmpty && maySayOfNobody(now: now)
    }

    /// Whether a log may say something that belongs to no attempt: not too often.
    func maySayOfNobody(now: ContinuousClock.Instant? = nil) -> Bool {
        let now = now ?? clock.now()
        return state.withLock { state in
            state.toldAt.removeAll { now - $0 > .seconds(60) }
            guard state.toldAt.count < 10 else { return false }
            state.toldAt.append(now)
            return true
        }
    }

    /// Once for each attempt, and once for each client.
    private func tell(_ error: LoginError, of keys: [String]) {
        var told: Set<String> = []
        for key in keys {
            let client = state.withLock { state -> Heimdallr? in
                guard let attempt = state.attempts[key], !attempt.hasToldOfRefusal else { return nil }
                state.attempts[key]?.hasToldOfRefusal = true
                return attempt.client
            }
            if let client, told.insert(client.name).inserted { client.refusedAnswer(error) }
        }
    }

    /// Sees it through even when the browser goes away, so that no code is spent for nothing.
    package func finish(_ taken: Taken, redirectedTo url: String) async throws(LoginError) {
        // Its copy goes first: two proxies must not spend one code. Where it is gone, another one has taken it.
        if taken.isShared, let shared, let cookie = taken.cookie,
            let key = PortableLogin.key(state: taken.attempt.state, cookie: cookie.value)
        {
            do {
                guard try await shared.takePending(key: key) != nil else { throw LoginError.expired }
            } catch let error as LoginError {
                throw error
            } catch {
                // The copy may be there: a browser that comes back must not spend the code with it.
                restore(taken)
                throw LoginError.endpoint(
                    .store(error as? TokenStoreError ?? TokenStoreError("the token store failed")))
            }
        }
        let outcome = await Task.detached { [self] in
            await carryOut(taken.client) { client throws(LoginError) in
                try await client.finishLogin(taken.attempt, redirectedTo: url)
            }
        }.value
        if let ticket = taken.ticket { settle(ticket, outcome) }
        try outcome.get()
        guard let cookie = taken.cookie else { return }
        let now = clock.now()
        state.withLock { state in
            state.finished.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
            state.finished[taken.attempt.state] = Finished(
                client: taken.client.name, cookie: cookie, expiresAt: now + Self.lifetime)
        }
    }

    /// Ends a login with the client that has its name now: a reload may have replaced the one that began it.
    private func carryOut(
        _ begun: Heimdallr, _ end: (Heimdallr) async throws(LoginError) -> Void
    ) async -> Result<Void, LoginError> {
        var client = current(begun)
        while true {
            do throws(LoginError) { return .success(try await end(client)) } catch {
                let next = current(client)
                guard error == .stopped, next !== client else { return .failure(error) }
                client = next
            }
        }
    }

    /// Nothing was sent. The browser may come again.
    private func restore(_ taken: Taken) {
        guard let cookie = taken.cookie else { return }
        keep(taken.attempt, taken.client, .browser(cookie), ticket: taken.ticket)
        state.withLock { $0.attempts[taken.attempt.state]?.isShared = true }
    }

    private func current(_ client: Heimdallr) -> Heimdallr { clients().first { $0.name == client.name } ?? client }

    private func keep(_ attempt: LoginAttempt, _ client: Heimdallr, _ holder: Holder, ticket: String?) {
        let now = clock.now()
        state.withLock { state in
            state.attempts.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
            state.attempts[attempt.state] = Attempt(
                attempt: attempt, client: client, holder: holder, ticket: ticket,
                expiresAt: min(attempt.expiresAt, now + Self.lifetime))
        }
    }

    // MARK: By a command

    /// For one who sends somebody to the page.
    /// - Parameter anyToken: a login of somebody else's does too.
    func openTicket(_ client: String, anyToken: Bool = false) throws(LoginError) -> String {
        var ticket = Ticket(client: client, expiresAt: clock.now() + Self.lifetime)
        ticket.isDoneWithAnyToken = anyToken
        return try issue(ticket)
    }

    /// For one who will bring the address back that the browser was sent to.
    func beginForCommand(
        _ client: Heimdallr, redirectURI: String
    ) async throws(LoginError) -> (ticket: String, url: String) {
        // It is printed, and somebody opens it later.
        let attempt = try await client.beginLogin(redirectURI: redirectURI, goesAtOnce: false)
        var ticket = Ticket(client: client.name, expiresAt: clock.now() + Self.lifetime)
        ticket.state = attempt.state
        let id = try issue(ticket)
        keep(attempt, client, .command, ticket: id)
        return (id, attempt.url)
    }

    /// - Returns: `false` when there is nothing that waits for an address.
    func finishForCommand(_ id: String, redirectedTo url: String) async -> Bool {
        let found = state.withLock { state -> Attempt? in
            guard let key = state.tickets[id]?.state else { return nil }
            state.tickets[id]?.state = nil
            return state.attempts.removeValue(forKey: key)
        }
        guard let found, found.expiresAt > clock.now() else { return false }
        try? await finish(
            Taken(attempt: found.attempt, client: found.client, ticket: id), redirectedTo: url)
        return true
    }

    // MARK: On another device

    /// The login that the page shows: the one under way, or a new one.
    func shownDeviceLogin(_ client: Heimdallr) async throws(LoginError) -> String {
        let now = clock.now()
        let running = state.withLock { state -> String? in
            guard let id = state.shown[client.name], let ticket = state.tickets[id],
                ticket.progress == .waiting, ticket.expiresAt > now
            else { return nil }
            return id
        }
        if let running { return running }
        let id = try await beginDevice(client)
        state.withLock { $0.shown[client.name] = id }
        return id
    }

    package func beginDevice(_ client: Heimdallr) async throws(LoginError) -> String {
        let login = try await client.beginDeviceLogin()
        var ticket = Ticket(client: client.name, expiresAt: login.expiresAt + .seconds(60))
        ticket.device = login
        let id = try issue(ticket)
        poll(login, client, id)
        await share(
            PortableLogin(login), key: PortableLogin.key(ticket: id), life: clock.now().duration(to: login.expiresAt))
        return id
    }

    /// A device login that began at another proxy of the fleet, which may be gone: this one asks the server, too.
    /// - Parameter id: as it stands in the page's address.
    package func resumeShared(_ id: String, _ client: Heimdallr) async -> Ticket? {
        guard let shared, let key = PortableLogin.key(ticket: id),
            let content = try? await shared.takePending(key: key),
            let login = PortableLogin(content, until: clock.now() + Self.lifetime),
            case .device(let device) = login.kind, device.client == client.name
        else { return nil }
        // There may be a third.
        await share(login, key: key, life: Self.lifetime)
        guard login.belongs(to: client) else { return nil }
        var ticket = Ticket(client: client.name, isDoneWithAnyToken: true, expiresAt: device.expiresAt)
        ticket.device = device
        let isNew = state.withLock { state in
            guard state.tickets[id] == nil else { return false }
            state.tickets.makeRoom(of: Self.capacity, now: clock.now(), end: \.expiresAt)
            state.tickets[id] = ticket
            return true
        }
        if isNew { poll(device, client, id) }
        return self.ticket(id)
    }

    /// Asks the server until the login is over.
    private func poll(_ login: DeviceLogin, _ client: Heimdallr, _ id: String) {
        let work = Task.detached { [weak self] in
            let outcome = await self?.carryOut(client) { client throws(LoginError) in
                try await client.finishDeviceLogin(login)
            }
            if let outcome { self?.settle(id, outcome) }
        }
        let isKept = state.withLock { state in
            state.tickets[id]?.work = work
            return state.tickets[id] != nil
        }
        if !isKept { work.cancel() }
    }

    // MARK: Passes

    /// Good once, for a minute; `nil` only without random numbers.
    func newPass() -> String? {
        guard let pass = try? RandomBytes.identifier() else { return nil }
        let now = clock.now()
        state.withLock { state in
            state.passes.makeRoom(of: Self.capacity, now: now, end: \.self)
            state.passes[pass] = now + .seconds(60)
        }
        return pass
    }

    func spendPass(_ pass: String?) -> Bool {
        guard let pass, let end = state.withLock({ $0.passes.removeValue(forKey: pass) }) else { return false }
        return end > clock.now()
    }

    // MARK: Tickets

    package func ticket(_ id: String) -> Ticket? {
        let now = clock.now()
        return state.withLock { state in
            guard let ticket = state.tickets[id], ticket.expiresAt > now else { return nil }
            return ticket
        }
    }

    /// It is given up by the one who began it.
    func cancel(_ id: String) {
        let work = state.withLock { state -> Task<Void, Never>? in
            guard let ticket = state.tickets.removeValue(forKey: id) else { return nil }
            if let key = ticket.state { state.attempts[key] = nil }
            state.attempts = state.attempts.filter { $0.value.ticket != id }
            return ticket.work
        }
        work?.cancel()
    }

    /// Ends everything.
    package func close() {
        let work = state.withLock { state in
            defer { state = State() }
            return state.tickets.values.compactMap(\.work)
        }
        for task in work { task.cancel() }
    }

    func settle(_ id: String, _ outcome: Result<Void, LoginError>) {
        state.withLock { state in
            guard state.tickets[id]?.progress == .waiting else { return }
            switch outcome {
            case .success: state.tickets[id]?.progress = .done
            case .failure(let error): state.tickets[id]?.progress = .failed("\(error)")
            }
        }
    }

    private func issue(_ ticket: Ticket) throws(LoginError) -> String {
        let id: String
        do throws(CryptographyError) { id = try RandomBytes.identifier() } catch { throw .noRandomness }
        let now = clock.now()
        let pushedOut = state.withLock { state -> [Task<Void, Never>] in
            let gone = state.tickets.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
            state.tickets[id] = ticket
            return gone.compactMap(\.work)
        }
        for task in pushedOut { task.cancel() }
        return id
    }
}
