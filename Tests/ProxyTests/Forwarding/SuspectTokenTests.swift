import Configuration
import Heimdallr
import Synchronization
import TestSupport
import Testing

@Suite("one upstream's 401s are its own affair", .stopsProxies, .serialized, .timeLimit(.minutes(2)))
struct SuspectTokenTests {
    /// A second upstream of the same client: `http://bad.test/`.
    private static let bad = "- {host: bad.test, url: ORIGIN, client: api, allow_plaintext: true}"

    /// `bad.test` answers 401 to everything.
    private static func refusing(_ challenge: String? = nil) -> RecordingOrigin.Handler {
        { exchange in
            guard exchange.head.target.hasPrefix("/bad") else { return try exchange.respond(body: "ok") }
            try exchange.respond(401, fields: challenge.map { [("WWW-Authenticate", $0)] } ?? [], body: "no")
        }
    }

    private static let challenges: [String?] = [nil, "Bearer", "Bearer error=\"invalid_token\""]

    @Test(arguments: challenges)
    func `199 refused requests without a pause fail no other request, and cost few token requests`(
        challenge: String?
    ) async throws {
        let proxy = try await ProxyInProcess(more: Self.bad, answer: Self.refusing(challenge))
        let events = ProgramEvents(proxy.client)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for _ in 0..<199 {
                    let status = try await proxy.request("GET", "http://bad.test/bad").status
                    #expect(status == 401)
                }
            }
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<199 {
                        let status = try await proxy.request().status
                        #expect(status == 200)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(proxy.endpoint.requests.count <= 3)
        #expect(events.names.filter { $0 == "token_lost" || $0 == "token_failed" }.isEmpty)
    }

    @Test func `a refused request each second fails none of the others, and costs ever fewer token requests`()
        async throws
    {
        let proxy = try await ProxyInProcess(
            more: Self.bad, keeping: .init(clock: .faster(by: 5)), answer: Self.refusing())
        // Six seconds of that clock.
        let end = ContinuousClock.now + .milliseconds(1200)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while ContinuousClock.now < end {
                    let status = try await proxy.request("GET", "http://bad.test/bad").status
                    #expect(status == 401)
                    // Time itself: two such requests a second of that clock.
                    try await Task.sleep(for: .milliseconds(100))
                }
            }
            group.addTask {
                while ContinuousClock.now < end {
                    let status = try await proxy.request().status
                    #expect(status == 200)
                    await Task.yield()
                }
            }
            try await group.waitForAll()
        }
        // The first, and one for each doubt: at once and after 4 s. Without the pauses it would be one each second.
        #expect((2...3).contains(proxy.endpoint.requests.count))
    }

    @Test func `other requests go on with the old token while the new one is on its way`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            if number > 0 { gate.wait() }
            return .token("T\(number + 1)")
        }
        let proxy = try await ProxyInProcess(more: Self.bad, endpoint: endpoint, answer: Self.refusing())
        async let refused = proxy.request("GET", "http://bad.test/bad")
        _ = try await endpoint.requests(2)
        for _ in 0..<20 { #expect(try await proxy.request().status == 200) }
        #expect(proxy.client.status().state == .ready)
        // The same upstream waits a little, and goes on with the old one.
        #expect(try await proxy.request("GET", "http://bad.test/good").status == 200)
        gate.open()
        #expect(try await refused.status == 401)
        let sent = proxy.origin.requests.filter { $0.target == "/" }.map(\.authorization)
        #expect(Set(sent) == [["Bearer T1"]])
        #expect(
            proxy.origin.requests.filter { $0.target == "/bad" }.map(\.authorization) == [
                ["Bearer T1"], ["Bearer T2"],
            ])
    }

    @Test func `a bad path does not stop the good ones of the same upstream`() async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing())
        for _ in 0..<50 {
            #expect(try await proxy.request("GET", "http://api.test/bad").status == 401)
            #expect(try await proxy.request("GET", "http://api.test/good").status == 200)
        }
        #expect(proxy.endpoint.requests.count == 2)
    }

    @Test(arguments: [1, 2])
    func `a token that is revoked for real costs one new token, and nobody's request fails`(threads: Int) async throws {
        let good = Mutex("T1")
        let issued = Mutex(1)
        let endpoint = try TokenEndpoint { _, _ in .token("T\(issued.withLock { $0 })") }
        let proxy = try await ProxyInProcess(
            more: Self.bad, threads: threads, endpoint: endpoint, keeping: .init(clock: .faster(by: 5))
        ) { exchange in
            let isGood = exchange.head.field("Authorization") == "Bearer \(good.withLock { $0 })"
            try exchange.respond(
                isGood ? 200 : 401, fields: isGood ? [] : [("WWW-Authenticate", "Bearer error=\"invalid_token\"")])
        }
        let rounds = 4
        let end = ContinuousClock.now + .milliseconds(240 * rounds + 300)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<6 {
                group.addTask {
                    while ContinuousClock.now < end {
                        let url = index % 2 == 0 ? "http://api.test/" : "http://bad.test/"
                        let status = try await proxy.request(index % 3 == 0 ? "POST" : "GET", url).status
                        #expect(status == 200)
                    }
                }
            }
            for round in 2...(rounds + 1) {
                // Time itself: more than the second of that clock between two token requests.
                try await Task.sleep(for: .milliseconds(240))
                issued.withLock { $0 = round }
                good.withLock { $0 = "T\(round)" }
            }
            try await group.waitForAll()
        }
        #expect(endpoint.requests.count == 1 + rounds)
    }

    @Test func `the same token again is no storm, and the 401 passes`() async throws {
        let proxy = try await ProxyInProcess(
            more: Self.bad, endpoint: try TokenEndpoint([.token("T1")]), answer: Self.refusing("Bearer"))
        for _ in 0..<30 {
            #expect(try await proxy.request("GET", "http://bad.test/bad").status == 401)
            #expect(try await proxy.request().status == 200)
        }
        #expect(proxy.endpoint.requests.count == 2)
    }

    @Test func `an upstream where nothing is replayed causes no storm of token requests either`() async throws {
        let proxy = try await ProxyInProcess(more: Self.bad, answer: Self.refusing()) {
            for index in $0.upstreams.indices { $0.upstreams[index].onUnauthorized = .pass }
        }
        for _ in 0..<100 {
            #expect(try await proxy.request("GET", "http://bad.test/bad").status == 401)
            #expect(try await proxy.request().status == 200)
        }
        #expect(proxy.endpoint.requests.count <= 3)
    }

    @Test func `invalid_token for a token that was never taken there is believed in the pause, too`() async throws {
        let challenge = Mutex<String?>(nil)
        let proxy = try await ProxyInProcess { exchange in
            let fields = challenge.withLock { $0 }.map { [("WWW-Authenticate", $0)] } ?? []
            guard exchange.head.field("Authorization") == "Bearer T3" else {
                return try exchange.respond(401, fields: fields)
            }
            try exchange.respond()
        }
        #expect(try await proxy.request().status == 401)
        #expect(try await proxy.request().status == 401)
        #expect(proxy.endpoint.requests.count == 2)
        challenge.withLock { $0 = "Bearer error=\"invalid_token\"" }
        #expect(try await proxy.request().status == 200)
        #expect(proxy.endpoint.requests.count == 3)
    }
}
