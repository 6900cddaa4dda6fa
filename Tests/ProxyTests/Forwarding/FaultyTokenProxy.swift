import Heimdallr
import Synchronization
import TestSupport

/// A proxy whose token endpoint has a fault, until the test mends it; then it gives T2.
final class FaultyTokenProxy: Sendable {
    let proxy: ProxyInProcess
    let arrivals: Arrivals
    /// Its requests wait for a token for as long as it takes.
    static let patient = "http://patient.test/"
    private let script: TokenFaultScript
    private let events: ProgramEvents

    /// - Parameter firstToken: T1 comes before the fault, for two seconds.
    init(_ fault: TokenFault, firstToken: Bool = false) async throws {
        let script = TokenFaultScript(fault, firstToken: firstToken)
        let arrivals = Arrivals()
        self.script = script
        self.arrivals = arrivals
        var clock = HeimdallrClock.system
        // The shortest backoff, one second. Jitter has its own tests.
        clock.random = { 0 }
        proxy = try await ProxyInProcess(
            // Shorter than the backoff, so that no request waits until the next attempt.
            upstream: "token_wait: 200ms",
            more: "- {host: patient.test, url: ORIGIN, client: api, allow_plaintext: true, token_wait: 60s}",
            endpoint: try TokenEndpoint { _, _ in script.answer },
            keeping: ProxyInProcess.Keeping(
                clock: clock, change: { $0.timeout = .milliseconds(400) },
                http: { FaultyNetwork(next: $0, script: script) }, onTokenRequest: { script.note($0) })
        ) { exchange in
            arrivals.note(exchange.head)
            try exchange.respond()
        }
        events = ProgramEvents(proxy.client)
    }

    /// Token requests so far.
    var tokenRequests: Int { script.requests }
    var failuresCounted: Int { script.failures }
    var failureCount: Int { events.names.count { $0 == "token_failed" } }
    /// The last failure in the status.
    var named: TokenEndpointFault? {
        switch proxy.client.status().lastError {
        case .tokenEndpointUnavailable(let fault, _), .clientRefused(let fault, _): fault
        default: nil
        }
    }
    /// When the fault ended.
    var mendedAt: ContinuousClock.Instant? { script.mendedAt }

    /// When the next attempt is due, as soon as that is `margin` away.
    private func backingOff(_ margin: Duration) async throws -> ContinuousClock.Instant {
        let client = proxy.client
        return try await eventually("the client waits for its next attempt, \(named.map { "\($0)" } ?? "")") {
            let now = ContinuousClock.now
            let status = client.status()
            guard status.state == .backingOff, let rest = status.nextAttemptIn, rest > margin else { return nil }
            return now + rest
        }
    }

    /// Whether a request whose wait ends before the next attempt is refused at once, and told when to come back.
    func refusesAtOnce() async throws -> Bool {
        // A busy machine may be too slow for one pause; not for each.
        for _ in 0..<10 {
            _ = try await backingOff(.milliseconds(300))
            let before = tokenRequests
            let response = try await proxy.request()
            guard tokenRequests == before else { continue }
            return [502, 503].contains(response.status) && Int(response.field("Retry-After") ?? "") != nil
        }
        return false
    }

    /// Ends the fault, and waits until a request gets through.
    /// - Returns: how long that took from when the next attempt was due.
    func mend() async throws -> Duration {
        let due = try await backingOff(.milliseconds(150))
        script.mend()
        try await eventually("recovery") { try await proxy.request().status == 200 }
        return max(.zero, .now - due)
    }
}

extension ProxyInProcess {
    /// A request every 150 ms from now on, none waiting for another: their statuses, and when they began.
    func load(while isWanted: Flag) async throws -> [(status: Int, at: ContinuousClock.Instant)] {
        typealias Answer = (status: Int, at: ContinuousClock.Instant)
        return try await withThrowingTaskGroup(of: Answer.self) { group in
            while isWanted.isUp {
                group.addTask {
                    let begin = ContinuousClock.now
                    return (try await self.request().status, begin)
                }
                // Time itself: the pace of the load.
                try await Task.sleep(for: .milliseconds(150))
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }
}

/// Up until it is lowered.
final class Flag: Sendable {
    private let state = Mutex(true)
    var isUp: Bool { state.withLock { $0 } }
    func lower() { state.withLock { $0 = false } }
}

/// The answer to the next token request.
final class TokenFaultScript: Sendable {
    private struct State {
        var requests = 0
        var failures = 0
        /// On a busy machine the first request may have to be repeated.
        var hasFirstToken = false
        var mendedAt: ContinuousClock.Instant?
        var answer: TokenEndpointAnswer
    }

    private let fault: TokenFault
    private let firstToken: Bool
    private let state: Mutex<State>

    init(_ fault: TokenFault, firstToken: Bool) {
        self.fault = fault
        self.firstToken = firstToken
        state = Mutex(State(answer: fault.answer))
    }

    var requests: Int { state.withLock { $0.requests } }
    var failures: Int { state.withLock { $0.failures } }
    var mendedAt: ContinuousClock.Instant? { state.withLock { $0.mendedAt } }
    /// To the token request under way: there is one at a time.
    var answer: TokenEndpointAnswer { state.withLock { $0.answer } }

    func mend() { state.withLock { $0.mendedAt = .now } }

    func note(_ report: TokenRequestReport) {
        state.withLock { state in
            if report.result != .success { state.failures += 1 } else { state.hasFirstToken = true }
        }
    }

    /// A token request goes out: where to, if not to the endpoint.
    func next() -> String? {
        state.withLock { state in
            state.requests += 1
            if firstToken, !state.hasFirstToken {
                state.answer = .token("T1", expiresIn: "2")
            } else if state.mendedAt != nil {
                state.answer = .token("T2")
            } else {
                state.answer = fault.answer
                return fault.url
            }
            return nil
        }
    }
}

/// The way to the token endpoint, which may lead elsewhere.
private struct FaultyNetwork: HeimdallrHTTPClient {
    let next: any HeimdallrHTTPClient
    let script: TokenFaultScript

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        var request = request
        if let url = script.next() { request.url = url }
        return try await next.send(request)
    }
}
