import Proxy
import TestSupport
import Testing

@Suite("a 401 that passes says why its request was not sent again", .stopsProxies, .timeLimit(.minutes(1)))
struct NotReplayedTests {
    struct Case: Sendable, CustomTestStringConvertible {
        /// Word of the access log for each request.
        var words: [String?]
        var upstream = ""
        var host = "api.test"
        var challenge: String? = "Bearer"
        /// Tokens that the API takes.
        var good = ""
        var answers: [TokenEndpointAnswer] = [.token("T1"), .token("T2"), .token("T3")]
        var fields: [String] = []
        var body: String?

        var testDescription: String { words.map { $0 ?? "-" }.joined(separator: ", ") }
    }

    private static let cases = [
        Case(words: [nil], good: "Bearer T2"),
        Case(
            words: ["body", nil], upstream: "max_replay_bytes: 10", good: "Bearer T2",
            body: String(repeating: "b", count: 100_000)),
        Case(words: ["off"], upstream: "on_unauthorized: pass"),
        Case(words: ["challenge"], challenge: "Basic realm=\"x\""),
        Case(words: ["challenge"], challenge: "Bearer error=\"insufficient_scope\""),
        Case(words: ["replayed", "paused"]),
        Case(words: ["no-token"], upstream: "token_wait: 1s", answers: [.token("T1"), .status(500)]),
        Case(words: ["own"], upstream: "on_existing: keep", fields: ["Authorization: Basic bWluZQ=="]),
        Case(words: ["fixed", "fixed"], host: "key.test"),
    ]

    @Test(arguments: cases) func `each obstacle of a replay has its word and its sentence`(_ example: Case) async throws
    {
        let proxy = try await ProxyInProcess(
            upstream: example.upstream,
            more: "- {host: key.test, url: ORIGIN, allow_plaintext: true, inject: {header: X-Key, value: k}}",
            endpoint: try TokenEndpoint(example.answers), isLogged: true
        ) { exchange in
            _ = try exchange.readBody()
            guard exchange.head.field("Authorization") != example.good else { return try exchange.respond() }
            let challenge = example.challenge.map { [("WWW-Authenticate", $0)] } ?? []
            try exchange.respond(401, fields: challenge, body: "no")
        }
        for (index, word) in example.words.enumerated() {
            let isLarge = index == 0
            let answer = try await proxy.request(
                example.body == nil ? "GET" : "POST", "http://\(example.host)/", fields: example.fields,
                body: isLarge ? example.body : example.body.map { _ in "b" })
            #expect(answer.status == (word == nil ? 200 : 401))
            try await eventually("the record") { proxy.log.all.count == index + 1 }
            let record = try #require(proxy.log.all.last)
            #expect(record.notReplayed == word)
            #expect((record.cause != nil) == (word != nil), "\(record.cause ?? "")")
        }
    }

    @Test func `a gRPC call that is refused behind a message says that its answer had passed`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { try $0.answer(status: 16) }
        #expect(try await proxy.send(call()).trailers.value("grpc-status") == "16")
        try await eventually("the record") { proxy.log.all.first?.notReplayed == "answered" }
    }

    @Test func `neither a 403 nor a 401 of an upstream without a credential has such a word`() async throws {
        let proxy = try await ProxyInProcess(
            more: "- {host: bare.test, url: ORIGIN, allow_plaintext: true}", isLogged: true
        ) { try $0.respond($0.head.field("Authorization") == nil ? 401 : 403) }
        #expect(try await proxy.request().status == 403)
        #expect(try await proxy.request("GET", "http://bare.test/").status == 401)
        try await eventually("the records") { proxy.log.all.count == 2 }
        #expect(proxy.log.all.allSatisfy { $0.notReplayed == nil })
    }
}
