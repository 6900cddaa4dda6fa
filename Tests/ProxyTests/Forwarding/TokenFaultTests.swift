import Heimdallr
import TestSupport
import Testing

@Suite("a proxy under load while its token endpoint misbehaves", .stopsProxies, .serialized, .timeLimit(.minutes(5)))
struct TokenFaultTests {
    @Test func `under every fault no bad token goes out, each request is answered, and recovery needs no restart`()
        async throws
    {
        let nginx = try await Nginx.secure(locations: "location / { return 204; }")
        let faults = TokenFault.all(untrusted: "https://localhost:\(nginx.httpsPort)/token")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, fault) in faults.enumerated() {
                // So few at once that none is slow for want of a processor.
                if index >= 12 { try await group.next() }
                group.addTask { try await run(fault) }
            }
            try await group.waitForAll()
        }
    }

    /// T1 for two seconds, then the fault, then T2: under load all the time.
    private func run(_ fault: TokenFault) async throws {
        let name = fault.name
        try await coldStart(fault)
        let faulty = try await FaultyTokenProxy(fault, firstToken: true)
        let begin = ContinuousClock.now
        #expect(try await faulty.proxy.request("GET", FaultyTokenProxy.patient).status == 200, "\(name)")
        // The server's reckoning, which is never before ours.
        let issued = try #require(faulty.proxy.endpoint.requests.last?.at)
        let expiry = issued + .seconds(2)
        let isLoaded = Flag()
        async let answers = faulty.proxy.load(while: isLoaded)
        try await Task.sleep(until: expiry + .milliseconds(1300), clock: .continuous)
        #expect(try await faulty.refusesAtOnce(), "\(name): a request waited, or had no Retry-After")
        #expect(faulty.named == fault.fault, "\(name)")
        #expect(faulty.tokenRequests <= Int((.now - begin) / .seconds(1)) + 1, "\(name): asked too often")
        #expect(try await faulty.mend() < .seconds(5), "\(name): recovered late")
        isLoaded.lower()
        let mendedAt = try #require(faulty.mendedAt)
        let whileDown = try await answers.filter { $0.at > expiry && $0.at < mendedAt - .milliseconds(300) }
        expectRefusals(whileDown.map(\.status), name)
        // A request takes its time from the proxy to the origin's record on a busy machine.
        let last = expiry + .milliseconds(900)
        for arrival in faulty.arrivals.all
        where arrival.authorization != "Bearer T2" && (arrival.authorization != "Bearer T1" || arrival.at > last) {
            Issue.record("\(name): \(arrival.authorization), \(arrival.at - expiry) after T1's expiry")
        }
        #expect(faulty.failureCount > 0 && faulty.failuresCounted > 0, "\(name): no event, or not counted")
    }

    private func expectRefusals(_ statuses: [Int], _ name: String) {
        #expect(!statuses.isEmpty && Set(statuses).isSubset(of: [502, 503]), "\(name): \(statuses)")
    }

    /// No token yet: nothing goes upstream until there is one.
    private func coldStart(_ fault: TokenFault) async throws {
        let faulty = try await FaultyTokenProxy(fault)
        var seen: [Int] = []
        for _ in 0..<3 { seen.append(try await faulty.proxy.request().status) }
        expectRefusals(seen, fault.name)
        #expect(faulty.arrivals.all.isEmpty, "\(fault.name): sent without a token")
        _ = try await faulty.mend()
        #expect(Set(faulty.arrivals.all.map(\.authorization)) == ["Bearer T2"], "\(fault.name)")
    }

    // MARK: What the peers do, once more by name

    @Test func `expires_in 0 makes no loop, and ends when the server gives tokens that live`() async throws {
        let faulty = try await FaultyTokenProxy(
            TokenFault("expires_in 0", .token("T1", expiresIn: "0"), .answer(.alreadyExpired)))
        let begin = ContinuousClock.now
        let isLoaded = Flag()
        async let answers = faulty.proxy.load(while: isLoaded)
        try await eventually("a third token request") { faulty.tokenRequests >= 3 }
        #expect(faulty.tokenRequests <= Int((.now - begin) / .seconds(1)) + 1)
        #expect(faulty.arrivals.all.isEmpty)
        _ = try await faulty.mend()
        isLoaded.lower()
        let statuses = Set(try await answers.map(\.status))
        #expect(statuses.contains(503) && statuses.isSubset(of: [200, 503]))
    }

    @Test func `a token that lives a second is used, and one is asked for a second`() async throws {
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)", expiresIn: "1") }
        let proxy = try await ProxyInProcess(endpoint: endpoint)
        let begin = ContinuousClock.now
        let isLoaded = Flag()
        async let answers = proxy.load(while: isLoaded)
        try await eventually("a third token") { endpoint.requests.count >= 3 }
        isLoaded.lower()
        // Requests wait for the next token, and get through.
        #expect(Set(try await answers.map(\.status)) == [200])
        #expect(endpoint.requests.count <= Int((.now - begin) / .seconds(1)) + 1)
    }

    @Test(arguments: OddAnswer.all)
    func `odd but valid answers are tokens`(odd: OddAnswer) async throws {
        let endpoint = try TokenEndpoint([odd.answer])
        let proxy = try await ProxyInProcess(endpoint: endpoint)
        for _ in 0..<3 { #expect(try await proxy.request().status == 200) }
        #expect(proxy.origin.requests.map(\.authorization) == Array(repeating: ["Bearer \(odd.token)"], count: 3))
        #expect(endpoint.requests.count == 1)
    }

    struct OddAnswer: CustomTestStringConvertible {
        var testDescription: String
        var answer: TokenEndpointAnswer
        var token = "T1"

        static let all: [OddAnswer] = {
            let long = String(repeating: "x", count: 16 * 1024)
            return [
                OddAnswer(testDescription: "expires_in in a string", answer: .token("T1", expiresIn: "\"3600\"")),
                OddAnswer(testDescription: "expires_in a float", answer: .token("T1", expiresIn: "3599.5")),
                OddAnswer(testDescription: "expires_in 10^18", answer: .token("T1", expiresIn: "1000000000000000000")),
                OddAnswer(testDescription: "expires_in 1e300", answer: .token("T1", expiresIn: "1e300")),
                OddAnswer(testDescription: "expires_in absent", answer: .token("T1", expiresIn: nil)),
                OddAnswer(testDescription: "expires_in null", answer: .token("T1", expiresIn: "null")),
                OddAnswer(testDescription: "token_type in capitals", answer: .token("T1", type: "BEARER")),
                OddAnswer(testDescription: "scope an array", answer: .token("T1", extra: #""scope":["a","b"]"#)),
                OddAnswer(testDescription: "further fields", answer: .token("T1", extra: #""user":{"n":[1,{}]}"#)),
                OddAnswer(
                    testDescription: "a byte order mark",
                    answer: .json("\u{FEFF}" + #"{"access_token":"T1","token_type":"bearer","expires_in":60}"#)),
                OddAnswer(testDescription: "16 KiB", answer: .token(long), token: long),
            ]
        }()
    }
}
