import Cryptography
import Heimdallr

/// Logins under way in this process. Attempts by browser are stored by `state`. Tickets tell a command or a page the
/// progress. Each table is bounded. Entries live for ten minutes, device logins as long as their code, passes a minute.
package struct LoginAttempts {
    /// Limit of entries in each table. At the limit, a new entry displaces the entry that ends first.
    static let capacity = 64
    static let lifetime = Duration.seconds(600)
    /// Limit of log lines per minute about answers that belong to no attempt.
    private static let mostReports = 10

    /// A browser's proof that it began the attempt.
    package struct Cookie: Sendable {
        static let prefix = "heimdallr-login-"

        /// Name of the cookie. Each attempt has a new name, so two tabs don't replace each other's cookie.
        package let name: String
        package let value: Secret

        func isAmong(_ cookies: [String: String]) -> Bool { cookies[name].map { Secret($0) == value } ?? false }
    }

    package struct Attempt: Sendable {
        package let login: LoginAttempt
        package let client: Heimdallr
        /// Cookie of the only browser that may bring the answer; `nil` if only the command with the ticket may.
        let cookie: Cookie?
        /// Ticket that receives the outcome.
        let ticket: String?
        var expiresAt: ContinuousClock.Instant
        /// Whether the shared store has a copy of this attempt.
        var isShared = false
        /// Whether the client has already been told of a refused answer.
        var hasReportedRefusal = false
    }

    /// Progress of a login, for the command or page that began it.
    package struct Ticket: Sendable {
        package enum Progress: Sendable, Equatable {
            case waiting
            case done
            case failed(String)
        }

        let client: String
        package internal(set) var progress = Progress.waiting
        /// Whether a token from any login of the client ends this login.
        var isDoneWithAnyToken = false
        /// Why the last pasted text was no answer.
        var complaint: String?
        package internal(set) var device: DeviceLogin?
        /// Whether the page shows this device login.
        var isShown = false
        let expiresAt: ContinuousClock.Instant
        /// Task that asks the server about the device code.
        var work: Task<Void, Never>?
    }

    package enum Refusal: Error, Equatable {
        /// The attempt is finished, too old, or belongs to another process.
        case unknown
        /// The attempt began in another browser.
        case foreign
        /// A command began the attempt, and waits for the browser's final address.
        case commands
    }

    package typealias Outcome = Result<Void, LoginError>

    private var attempts: [String: Attempt] = [:]
    private var tickets: [String: Ticket] = [:]
    /// Successful attempts by `state`, for browsers that load the final page again.
    private var finished: [String: Attempt] = [:]
    /// Attempts whose answer is being taken, by `state`, with further requests that bring the same answer.
    private var underWay: [String: (attempt: Attempt, waiting: [CheckedContinuation<Outcome?, Never>])] = [:]
    /// End times of passes. A pass admits a redirect from our page to the same page under another host name, which a
    /// browser treats as another site.
    private var passes: [String: ContinuousClock.Instant] = [:]
    private var reports: [ContinuousClock.Instant] = []

    // MARK: Attempts

    mutating func add(_ attempt: Attempt, now: ContinuousClock.Instant) {
        attempts.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
        attempts[attempt.login.state] = attempt
    }

    /// Removes and returns the attempt, so that it is finished only once. Requests of other browsers do not remove it.
    mutating func take(
        state: String, cookies: [String: String], now: ContinuousClock.Instant
    ) -> Result<Attempt, Refusal> {
        guard let attempt = attempts[state], attempt.expiresAt > now else { return .failure(.unknown) }
        guard let cookie = attempt.cookie else { return .failure(.commands) }
        guard cookie.isAmong(cookies) else { return .failure(.foreign) }
        attempts[state] = nil
        underWay[state] = (attempt, [])
        return .success(attempt)
    }

    /// Removes and returns the attempt of a command.
    mutating func take(ofCommand ticket: String, now: ContinuousClock.Instant) -> Attempt? {
        guard let (state, attempt) = attempts.first(where: { $1.ticket == ticket && $1.cookie == nil }) else {
            return nil
        }
        attempts[state] = nil
        return attempt.expiresAt > now ? attempt : nil
    }

    /// Lets the attempt of a command wait for another answer.
    /// - Returns: `false` if the command has cancelled it.
    mutating func reopen(_ attempt: Attempt, _ complaint: String, now: ContinuousClock.Instant) -> Bool {
        guard let id = attempt.ticket, tickets[id] != nil else { return false }
        tickets[id]?.progress = .waiting
        tickets[id]?.complaint = complaint
        add(attempt, now: now)
        return true
    }

    /// Returns the `state` of each attempt of a browser.
    func states(of cookies: [String: String], now: ContinuousClock.Instant) -> [String] {
        attempts.filter { $1.expiresAt > now && $1.cookie?.isAmong(cookies) == true }.map(\.key)
    }

    func loginMethod(state: String) -> LoginMethod? { attempts[state]?.client.loginMethod }

    /// Returns the clients to tell of a refused answer, and marks their attempts as told. Told attempts are skipped.
    mutating func clientsToTell(states: [String]) -> [Heimdallr] {
        var clients: [String: Heimdallr] = [:]
        for state in states where attempts[state]?.hasReportedRefusal == false {
            attempts[state]?.hasReportedRefusal = true
            if let client = attempts[state]?.client { clients[client.name] = client }
        }
        return Array(clients.values)
    }

    /// Whether to log another line about an answer that belongs to no attempt.
    mutating func mayReport(now: ContinuousClock.Instant) -> Bool {
        reports.removeAll { now - $0 > .seconds(60) }
        guard reports.count < Self.mostReports else { return false }
        reports.append(now)
        return true
    }

    /// Lets a request wait for the same browser's request with the same answer.
    /// - Returns: `false` if no such answer is being taken.
    mutating func wait(
        state: String, cookies: [String: String], _ waiting: CheckedContinuation<Outcome?, Never>
    ) -> Bool {
        guard underWay[state]?.attempt.cookie?.isAmong(cookies) == true else { return false }
        underWay[state]?.waiting.append(waiting)
        return true
    }

    /// - Returns: the requests that wait for the outcome.
    mutating func ended(_ attempt: Attempt) -> [CheckedContinuation<Outcome?, Never>] {
        underWay.removeValue(forKey: attempt.login.state)?.waiting ?? []
    }

    mutating func succeeded(_ attempt: Attempt, now: ContinuousClock.Instant) {
        finished.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
        finished[attempt.login.state] = attempt
        finished[attempt.login.state]?.expiresAt = now + Self.lifetime
    }

    /// Returns the name of a successful attempt's client, if this browser made the attempt.
    func finished(state: String, cookies: [String: String], now: ContinuousClock.Instant) -> String? {
        guard let finished = finished[state], finished.expiresAt > now, finished.cookie?.isAmong(cookies) == true
        else { return nil }
        return finished.client.name
    }

    // MARK: Passes

    mutating func newPass(now: ContinuousClock.Instant) -> String? {
        guard let pass = try? RandomBytes.identifier() else { return nil }
        passes.makeRoom(of: Self.capacity, now: now, end: \.self)
        passes[pass] = now + .seconds(60)
        return pass
    }

    mutating func spend(pass: String, now: ContinuousClock.Instant) -> Bool {
        passes.removeValue(forKey: pass).map { $0 > now } ?? false
    }

    // MARK: Tickets

    /// - Returns: tasks of displaced tickets, to be cancelled.
    mutating func add(_ ticket: Ticket, id: String, now: ContinuousClock.Instant) -> [Task<Void, Never>] {
        let displaced = tickets.makeRoom(of: Self.capacity, now: now, end: \.expiresAt)
        tickets[id] = ticket
        return displaced.compactMap(\.work)
    }

    func ticket(_ id: String, now: ContinuousClock.Instant) -> Ticket? {
        tickets[id].flatMap { $0.expiresAt > now ? $0 : nil }
    }

    /// - Returns: whether the ticket still exists.
    mutating func setWork(_ work: Task<Void, Never>, id: String) -> Bool {
        tickets[id]?.work = work
        return tickets[id] != nil
    }

    mutating func settle(_ id: String, _ outcome: Result<Void, LoginError>) {
        guard tickets[id]?.progress == .waiting else { return }
        switch outcome {
        case .success: tickets[id]?.progress = .done
        case .failure(let error): tickets[id]?.progress = .failed("\(error)")
        }
    }

    /// Returns the ticket of the running device login that the page shows.
    func shownDevice(of client: String, now: ContinuousClock.Instant) -> String? {
        tickets.first {
            $1.isShown && $1.client == client && $1.progress == .waiting && $1.expiresAt > now
        }?.key
    }

    mutating func show(_ id: String) { tickets[id]?.isShown = true }

    /// Removes a ticket and its attempts.
    /// - Returns: the ticket's task, to be cancelled.
    mutating func cancel(_ id: String) -> Task<Void, Never>? {
        guard let ticket = tickets.removeValue(forKey: id) else { return nil }
        attempts = attempts.filter { $0.value.ticket != id }
        return ticket.work
    }

    /// Removes everything but answers that are being taken.
    /// - Returns: the tasks, to be cancelled.
    mutating func removeAll() -> [Task<Void, Never>] {
        defer {
            let underWay = underWay
            self = LoginAttempts()
            self.underWay = underWay
        }
        return tickets.values.compactMap(\.work)
    }
}

extension Dictionary {
    /// Makes room for one more entry: removes all ended entries, or else, at the capacity, the entry that ends first.
    /// - Returns: the removed entries.
    @discardableResult
    mutating func makeRoom(
        of capacity: Int, now: ContinuousClock.Instant, end: (Value) -> ContinuousClock.Instant
    ) -> [Value] {
        var gone = filter { end($0.value) <= now }.map(\.key)
        if gone.isEmpty, count >= capacity, let first = self.min(by: { end($0.value) < end($1.value) })?.key {
            gone.append(first)
        }
        return gone.compactMap { removeValue(forKey: $0) }
    }
}
