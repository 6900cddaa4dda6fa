import Heimdallr
import Synchronization
import TestSupport
import Testing

@Suite("requests and the token they share", .stopsProxies, .serialized, .timeLimit(.minutes(3)))
struct TokenFlightTests {
    private static let crowd = 500
    /// Room for all of them at the upstream at once.
    private static let room = "max_connections: 600"

    /// Expects that each of them got through with `token` and no other.
    private func expectAll(
        _ statuses: [Int], with token: String, _ proxy: ProxyInProcess,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(statuses == Array(repeating: 200, count: Self.crowd), sourceLocation: sourceLocation)
        let sent = proxy.origin.requests.suffix(Self.crowd).map(\.authorization)
        #expect(Set(sent) == [["Bearer \(token)"]], sourceLocation: sourceLocation)
        #expect(proxy.endpoint.mostAtOnce == 1, sourceLocation: sourceLocation)
    }

    // MARK: One token request for all callers

    @Test func `500 requests on a cold start wait for one token request, and those that leave cancel nothing`()
        async throws
    {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            gate.wait()
            return .token("T\(number + 1)")
        }
        let proxy = try await ProxyInProcess(upstream: Self.room, endpoint: endpoint)
        var leaving: [RawClient] = []
        for _ in 0..<20 {
            let client = try await proxy.connect(sending: message())
            leaving.append(client)
        }
        // The first of them has begun the token request that they all leave.
        _ = try await endpoint.requests(1)
        let client = proxy.client
        try await eventually("they wait") { client.status().waiters == 20 }
        for client in leaving { client.resetOnClose() }
        leaving = []
        let all = try await proxy.statuses(of: Self.crowd) {
            try await eventually("all wait", within: .seconds(60)) { client.status().waiters >= Self.crowd }
            #expect(proxy.origin.requests.isEmpty)
            gate.open()
        }
        expectAll(all, with: "T1", proxy)
        #expect(proxy.origin.requests.count == Self.crowd)
        #expect(endpoint.requests.count == 1)
    }

    @Test func `500 requests when the token has expired make one token request`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            if number > 0 { gate.wait() }
            return .token("T\(number + 1)", expiresIn: number == 0 ? "1" : "3600")
        }
        // Nothing is refreshed ahead.
        let proxy = try await ProxyInProcess(
            upstream: Self.room, endpoint: endpoint, keeping: .init(change: { $0.refreshBefore = .zero }))
        #expect(try await proxy.request().status == 200)
        let client = proxy.client
        try await eventually("T1 expires") { !client.hasAccessToken }
        #expect(endpoint.requests.count == 1)
        let all = try await proxy.statuses(of: Self.crowd) {
            try await eventually("all wait", within: .seconds(60)) { client.status().waiters == Self.crowd }
            gate.open()
        }
        expectAll(all, with: "T2", proxy)
        #expect(endpoint.requests.count == 2)
    }

    @Test func `500 requests that get a 401 with the same token make one token request`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(upstream: Self.room) { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1" else { return try exchange.respond() }
            gate.wait()
            try exchange.respond(401, fields: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")])
        }
        let all = try await proxy.statuses(of: Self.crowd) {
            try await eventually("all were sent with T1", within: .seconds(60)) {
                proxy.origin.requests.count == Self.crowd
            }
            gate.open()
        }
        expectAll(all, with: "T2", proxy)
        #expect(proxy.origin.requests.count == 2 * Self.crowd)
        #expect(proxy.origin.requests.filter { $0.authorization == ["Bearer T1"] }.count == Self.crowd)
        #expect(proxy.endpoint.requests.count == 2)
    }

    @Test func `each request waits by its own upstream's token_wait, and the token request goes on`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            gate.wait()
            return .token("T\(number + 1)")
        }
        let proxy = try await ProxyInProcess(
            upstream: "token_wait: 300ms",
            more: "- {host: patient.test, url: ORIGIN, client: api, allow_plaintext: true, token_wait: 60s}",
            endpoint: endpoint)
        async let patient = proxy.request("GET", "http://patient.test/")
        let hasty = try await proxy.request()
        try expectProblem(hasty, "no-token")
        #expect(hasty.field("Retry-After") != nil)
        gate.open()
        #expect(try await patient.status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
        #expect(endpoint.requests.count == 1)
    }

    // MARK: The refresh in the background

    @Test func `no request at constant load waits for a refresh`() async throws {
        // Every token but the first takes a second to come.
        let wait = Duration.seconds(1)
        let endpoint = try TokenEndpoint { _, number in
            .token("T\(number + 1)", expiresIn: "4", delay: number == 0 ? .zero : wait)
        }
        let record = Arrivals()
        var clock = HeimdallrClock.system
        // Refreshed after half the life: two seconds are left then.
        clock.random = { 0.999 }
        let proxy = try await ProxyInProcess(endpoint: endpoint, keeping: .init(clock: clock)) { exchange in
            record.note(exchange.head)
            try exchange.respond()
        }
        #expect(try await proxy.request().status == 200)
        let loaders = 4
        try await withThrowingTaskGroup(of: Void.self) { group in
            for loader in 0..<loaders {
                group.addTask {
                    let client = try await proxy.connect()
                    while endpoint.requests.count < 4 {
                        try await client.send(message(fields: ["X-Loader: \(loader)"]))
                        #expect(try await client.response().status == 200)
                        // Time itself: the pace of the load.
                        try await Task.sleep(for: .milliseconds(30))
                    }
                }
            }
            try await group.waitForAll()
        }
        for number in 1...2 {
            let begin = endpoint.requests[number].at
            let during = record.all.filter { $0.at > begin && $0.at < begin + wait }
            for loader in 0..<loaders {
                let served = during.filter { $0.loader == "\(loader)" }
                // Who waits for the refresh has one request under way in all that time, and sends no other.
                #expect(served.count >= 3, "loader \(loader) stood still in refresh \(number)")
                #expect(Set(served.map(\.authorization)) == ["Bearer T\(number)"])
            }
        }
    }

    // MARK: The token of a second try

    @Test func `a request whose connection died is not sent again with a token that has expired meanwhile`()
        async throws
    {
        let record = Arrivals()
        let endpoint = try TokenEndpoint { _, number in
            .token("T\(number + 1)", expiresIn: number == 0 ? "2" : "3600")
        }
        let proxy = try await ProxyInProcess(
            endpoint: endpoint, keeping: .init(change: { $0.refreshBefore = .zero })
        ) { exchange in
            record.note(exchange.head)
            guard exchange.head.target == "/dies", exchange.head.field("Authorization") == "Bearer T1" else {
                return try exchange.respond()
            }
            // Until the token has expired.
            guard let issued = endpoint.requests.first?.at else { return exchange.close() }
            exchange.pause(max(.zero, issued + .seconds(2) - .now))
            exchange.close()
        }
        // An unused connection that closes is not treated as one closed for idleness.
        #expect(try await proxy.request().status == 200)
        #expect(try await proxy.request("GET", "http://api.test/dies").status == 200)
        let tries = record.all.filter { $0.target == "/dies" }
        #expect(tries.map(\.authorization) == ["Bearer T1", "Bearer T2"])
    }

    @Test func `a request whose connection died is not sent again with a token that was rejected meanwhile`()
        async throws
    {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1", exchange.head.target != "/first" else {
                return try exchange.respond()
            }
            guard exchange.head.target == "/dies" else { return try exchange.respond(401) }
            gate.wait()
            exchange.close()
        }
        #expect(try await proxy.request("GET", "http://api.test/first").status == 200)
        async let dying = proxy.request("GET", "http://api.test/dies")
        try await eventually("it was sent") { proxy.origin.requests.count == 2 }
        #expect(try await proxy.request().status == 200)
        gate.open()
        #expect(try await dying.status == 200)
        let tries = proxy.origin.requests.filter { $0.target == "/dies" }.map(\.authorization)
        #expect(tries == [["Bearer T1"], ["Bearer T2"]])
    }
}

/// Requests as an origin saw them, and when.
final class Arrivals: Sendable {
    struct Arrival: Sendable {
        var at: ContinuousClock.Instant
        var target: String
        /// All of `Authorization`; empty if there is none.
        var authorization: String
        var loader: String?
    }

    private let arrivals = Mutex<[Arrival]>([])

    var all: [Arrival] { arrivals.withLock { $0 } }

    func note(_ head: RecordedRequest) {
        // Not through the proxy: the port was another test's token endpoint a moment ago, and somebody still looks there.
        guard head.field("Via") != nil else { return }
        let arrival = Arrival(
            at: .now, target: head.target, authorization: head.values("Authorization").joined(separator: ", "),
            loader: head.field("X-Loader"))
        arrivals.withLock { $0.append(arrival) }
    }
}
