import Cryptography
import Heimdallr
import Synchronization

/// Logins under way. `LoginAttempts` holds the logins of this process, `SharedLogins` the copies for other proxies of a
/// fleet. Any thread.
package final class PendingLogins: Sendable {
    private let state = Mutex(LoginAttempts())
    private let clock: HeimdallrClock
    private let clients: @Sendable () -> [Heimdallr]
    /// Copies for other proxies; `nil` without a shared store.
    private let shared: SharedLogins?

    /// - Parameters:
    ///   - clients: clients in use. After a reload, a login continues with the new client of the same name.
    ///   - clock: the clock of the clients.
    package init(
        shared: (any PendingLoginStore)? = nil, clients: @escaping @Sendable () -> [Heimdallr] = { [] },
        clock: HeimdallrClock = .system
    ) {
        self.shared = shared.map { SharedLogins(store: $0, clock: clock) }
        self.clients = clients
        self.clock = clock
    }

    private func update<Value>(_ change: (inout LoginAttempts, ContinuousClock.Instant) -> Value) -> Value {
        let now = clock.now()
        return state.withLock { change(&$0, now) }
    }

    // MARK: At a browser

    /// - Parameters:
    ///   - ticket: receives the outcome; an unknown ticket has no effect.
    ///   - agreed: as for `Heimdallr.beginLogin(redirectURI:opensAtOnce:agreed:)`.
    /// - Returns: the URL for the browser, and the cookie that the browser has to bring back.
    package func beginAtBrowser(
        _ client: Heimdallr, redirectURI: String, ticket: String?, agreed: String? = nil
    ) async throws(LoginError) -> (url: String, cookie: LoginAttempts.Cookie) {
        guard let name = try? RandomBytes.identifier(), let value = try? RandomBytes.identifier() else {
            throw .noRandomness
        }
        let cookie = LoginAttempts.Cookie(name: LoginAttempts.Cookie.prefix + name, value: Secret(value))
        func begin() async throws(LoginError) -> LoginAttempts.Attempt {
            attempt(
                try await client.beginLogin(redirectURI: redirectURI, agreed: agreed), client, cookie: cookie,
                ticket: ticket)
        }
        var begun = try await begin()
        if let shared {
            if await shared.put(begun) {
                begun.isShared = true
            } else {
                // A failed write may have left a copy, with which another proxy could spend the same code. So a new
                // attempt replaces this attempt, whose `state` no browser has seen yet.
                begun = try await begin()
            }
        }
        update { [begun] in $0.add(begun, now: $1) }
        return (begun.login.url, cookie)
    }

    /// Takes an attempt of this process. If another browser brings the answer, tells the client.
    package func take(
        state key: String, cookies: [String: String], now: ContinuousClock.Instant? = nil
    ) throws(LoginAttempts.Refusal) -> LoginAttempts.Attempt {
        let now = now ?? clock.now()
        let taken = state.withLock { $0.take(state: key, cookies: cookies, now: now) }
        if case .failure(.foreign) = taken { tell(.foreignBrowser, of: [key]) }
        return try taken.get()
    }

    /// Takes an attempt that began at another proxy.
    package func takeShared(
        state: String, cookies: [String: String], clients: [Heimdallr]
    ) async -> LoginAttempts.Attempt? {
        await shared?.take(state: state, cookies: cookies, clients: clients)
    }

    func finished(state: String, cookies: [String: String]) -> String? {
        update { $0.finished(state: state, cookies: cookies, now: $1) }
    }

    /// Whether the attempt's answer is in the URL's fragment, which only a script can read.
    func awaitsFragment(state key: String) -> Bool { state.withLock { $0.loginMethod(state: key) } == .implicit }

    /// Tells the clients of this browser's attempts about an error without a state. The attempts stay valid.
    /// - Returns: whether to log the error: it belongs to no attempt, and the log had few such lines.
    func refused(_ error: OAuthError, cookies: [String: String]) -> Bool {
        let states = update { $0.states(of: cookies, now: $1) }
        tell(.refused(error), of: states)
        return states.isEmpty && mayReport()
    }

    func mayReport() -> Bool { update { $0.mayReport(now: $1) } }

    private func tell(_ error: LoginError, of states: [String]) {
        for client in state.withLock({ $0.clientsToTell(states: states) }) { client.reportFailure(error) }
    }

    /// Finishes the login, also if the browser leaves, so that the code is not spent without effect.
    package func finish(_ attempt: LoginAttempts.Attempt, redirectedTo url: String) async throws(LoginError) {
        let outcome = await take(attempt, url)
        for request in state.withLock({ $0.ended(attempt) }) { request.resume(returning: outcome) }
        try outcome.get()
    }

    /// Waits for another request of this browser that has brought the same answer, if it is being taken.
    /// - Returns: `nil` if there is none.
    func outcome(state key: String, cookies: [String: String]) async -> LoginAttempts.Outcome? {
        await withCheckedContinuation { request in
            if !state.withLock({ $0.wait(state: key, cookies: cookies, request) }) { request.resume(returning: nil) }
        }
    }

    private func take(_ attempt: LoginAttempts.Attempt, _ url: String) async -> LoginAttempts.Outcome {
        if attempt.isShared, let shared {
            let isOurs: Bool
            do { isOurs = try await shared.claim(attempt) } catch {
                // The copy may still exist. Nothing was sent, so the browser may try again.
                update { $0.add(attempt, now: $1) }
                let fault = error as? TokenStoreError ?? TokenStoreError("the token store failed")
                return .failure(.endpoint(.store(fault)))
            }
            guard isOurs else { return .failure(.expired) }
        }
        let outcome = await Task.detached { [self] in
            await carryOut(attempt.client) { client throws(LoginError) in
                try await client.finishLogin(attempt.login, redirectedTo: url)
            }
        }.value
        if let ticket = attempt.ticket { state.withLock { $0.settle(ticket, outcome) } }
        if case .success = outcome { update { $0.succeeded(attempt, now: $1) } }
        return outcome
    }

    /// Ends a login with the current client: a reload may have replaced the client that began the login.
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

    private func current(_ client: Heimdallr) -> Heimdallr { clients().first { $0.name == client.name } ?? client }

    private func attempt(
        _ login: LoginAttempt, _ client: Heimdallr, cookie: LoginAttempts.Cookie?, ticket: String?
    ) -> LoginAttempts.Attempt {
        LoginAttempts.Attempt(
            login: login, client: client, cookie: cookie, ticket: ticket,
            expiresAt: min(login.expiresAt, clock.now() + LoginAttempts.lifetime))
    }

    // MARK: By a command

    /// Issues a ticket for a command that sends a person to the page.
    /// - Parameter anyToken: whether a token from any login of the client ends this login.
    func openTicket(_ client: String, anyToken: Bool = false) throws(LoginError) -> String {
        var ticket = LoginAttempts.Ticket(client: client, expiresAt: clock.now() + LoginAttempts.lifetime)
        ticket.isDoneWithAnyToken = anyToken
        return try issue(ticket)
    }

    /// Begins a login for a command that will bring the final address of the browser.
    func beginForCommand(
        _ client: Heimdallr, redirectURI: String
    ) async throws(LoginError) -> (ticket: String, url: String) {
        // Not at once: the URL is printed, and a person opens it later.
        let login = try await client.beginLogin(redirectURI: redirectURI, opensAtOnce: false)
        let id = try openTicket(client.name)
        let attempt = attempt(login, client, cookie: nil, ticket: id)
        update { $0.add(attempt, now: $1) }
        return (id, login.url)
    }

    /// Takes what a person has pasted. A text that is no answer to this login, or a code that the server refuses, has no
    /// effect but a complaint, and the login still waits.
    /// - Returns: `false` if no login with this ticket waits for an address; `true` also if the login fails.
    func finishForCommand(_ id: String, redirectedTo text: String) async -> Bool {
        guard let attempt = update({ $0.take(ofCommand: id, now: $1) }) else { return false }
        do throws(LoginError) {
            let url = attempt.login.address(inPasted: text)
            do throws(LoginError) { try attempt.login.check(url) } catch {
                return update { $0.reopen(attempt, "\(error)", now: $1) }
            }
            try await finish(attempt, redirectedTo: url)
        } catch {
            switch error {
            case .malformedRedirect: break
            case .refused(let refusal) where refusal.code == .invalidGrant: break
            default: return true
            }
            return update { $0.reopen(attempt, "\(error)", now: $1) }
        }
        return true
    }

    // MARK: On another device

    /// Returns the ticket of the device login that the page shows: a running login, or a new login.
    func shownDeviceLogin(_ client: Heimdallr) async throws(LoginError) -> String {
        if let running = update({ $0.shownDevice(of: client.name, now: $1) }) { return running }
        let id = try await beginDevice(client)
        state.withLock { $0.show(id) }
        return id
    }

    package func beginDevice(_ client: Heimdallr) async throws(LoginError) -> String {
        let login = try await client.beginDeviceLogin()
        let id = try issue(
            LoginAttempts.Ticket(client: client.name, device: login, expiresAt: login.expiresAt + .seconds(60)))
        poll(login, client, id)
        await shared?.put(login, ticket: id, life: clock.now().duration(to: login.expiresAt))
        return id
    }

    /// Returns the ticket; `nil` for an unknown login. If another proxy began the login, polls the server from here as
    /// well, because the other proxy may have stopped.
    /// - Parameter id: identifier from the page's address.
    package func resume(_ id: String, _ client: Heimdallr) async -> LoginAttempts.Ticket? {
        if let ticket = ticket(id) { return ticket }
        guard let device = await shared?.device(ticket: id, client) else { return nil }
        var ticket = LoginAttempts.Ticket(client: client.name, device: device, expiresAt: device.expiresAt)
        ticket.isDoneWithAnyToken = true
        if self.ticket(id) == nil {
            add(ticket, id)
            poll(device, client, id)
        }
        return self.ticket(id)
    }

    /// Asks the server until the login is over.
    private func poll(_ login: DeviceLogin, _ client: Heimdallr, _ id: String) {
        let work = Task.detached { [weak self] in
            let outcome = await self?.carryOut(client) { client throws(LoginError) in
                try await client.finishDeviceLogin(login)
            }
            if let outcome { self?.state.withLock { $0.settle(id, outcome) } }
        }
        if !state.withLock({ $0.setWork(work, id: id) }) { work.cancel() }
    }

    // MARK: Passes

    /// Returns a pass that is valid once, for a minute; `nil` only if no random numbers are available.
    func newPass() -> String? { update { $0.newPass(now: $1) } }

    func spendPass(_ pass: String?) -> Bool { pass.map { pass in update { $0.spend(pass: pass, now: $1) } } ?? false }

    // MARK: Tickets

    package func ticket(_ id: String) -> LoginAttempts.Ticket? { update { $0.ticket(id, now: $1) } }

    func cancel(_ id: String) { state.withLock { $0.cancel(id) }?.cancel() }

    package func close() { for task in state.withLock({ $0.removeAll() }) { task.cancel() } }

    private func issue(_ ticket: LoginAttempts.Ticket) throws(LoginError) -> String {
        guard let id = try? RandomBytes.identifier() else { throw .noRandomness }
        add(ticket, id)
        return id
    }

    private func add(_ ticket: LoginAttempts.Ticket, _ id: String) {
        for task in update({ $0.add(ticket, id: id, now: $1) }) { task.cancel() }
    }
}
