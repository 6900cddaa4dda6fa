import Reports
import TestSupport
import Testing

@testable import Administration

@Suite("probes", .timeLimit(.minutes(2)))
struct ProbeTests {
    @Test(arguments: ["/livez", "/readyz", "/healthz", "/metrics"])
    func `probes answer to any Host, from anywhere, without a token`(path: String) async throws {
        let admin = try await AdministeredProxy(admin: "token: {file: FOLDER/admin-token}")
        try await admin.answersReady()
        for fields in [[], [("Origin", "https://evil.example")], [("Sec-Fetch-Site", "cross-site")]] {
            let answer = try await admin.get(path, fields, host: "10.1.2.3:8081")
            #expect(answer.status == 200)
            #expect(answer.field("Access-Control-Allow-Origin") == nil)
            #expect(answer.field("Cache-Control") == "no-store")
            #expect(answer.field("X-Content-Type-Options") == "nosniff")
            #expect(answer.field("Server") == nil)
        }
        #expect(try await admin.send("HEAD", path).status == 200)
        #expect(try await admin.send("POST", path).status == 404)
    }

    @Test func `readiness waits for each client's first outcome`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token(accessToken)
        }
        let admin = try await AdministeredProxy(endpoint)
        _ = try await endpoint.requests(1)
        let waiting = try await admin.get("/readyz")
        #expect(waiting.status == 503)
        #expect(waiting.text.contains("client api"))
        #expect(try await admin.get("/livez").status == 200)
        gate.open()
        try await admin.answersReady()
        #expect(try await admin.get("/readyz?strict").status == 200)
    }

    @Test func `a bad outcome is an outcome; strict readiness says what is wrong`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.error("invalid_client", status: 401)]))
        try await admin.answersReady()
        for query in ["?strict", "?strict=1", "?strict=true"] {
            let strict = try await admin.get("/readyz\(query)")
            #expect(strict.status == 503)
            #expect(strict.text.contains("client api"))
        }
        #expect(try await admin.get("/readyz?strict=false").status == 200)
    }

    @Test func `a token that expired unused is no reason to get no requests`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.token(accessToken, expiresIn: "1")]))
        try await admin.answersReady()
        try await eventually("the state idle") { try await admin.get("/status").text.contains(#""state": "idle""#) }
        #expect(try await admin.get("/readyz?strict").status == 200)
    }

    @Test func `a proxy that stops is no longer ready, and still alive`() async throws {
        let gate = Gate()
        let admin = try await AdministeredProxy(TokenEndpoint([.token(accessToken)]))
        let slow = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond(body: "late")
        }
        defer { gate.open() }
        let busy = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: "  - {host: slow.test, url: \"\(slow.url)\", allow_plaintext: true}")
        async let answer = busy.proxy.get("http://slow.test/")
        _ = try await eventually("the request is under way") { slow.requests.isEmpty ? nil : true }
        busy.proxy.process.signal(15)
        try await eventually("no longer ready") { try await busy.get("/readyz").status != 200 }
        #expect(try await busy.get("/readyz").text.contains("stopping"))
        #expect(try await busy.get("/livez").status == 200)
        gate.open()
        #expect(try await answer.text == "late")
        #expect(try await busy.proxy.process.ended() == .exited(0))
        #expect(try await admin.get("/readyz").status == 200)
    }

    @Test func `a loop that hangs is not alive`() async {
        func model(_ pulse: @escaping @Sendable () async -> Void) -> AdminModel {
            AdminModel(
                sources: AdministrationSources(
                    version: "0", clients: [], pulse: pulse, traffic: { TrafficReport(upstreams: [], inFlight: 0) },
                    route: { _, _, _ in .refused(status: 403, word: "no-upstream", detail: "") }),
                tokens: TokenMetrics(clients: []))
        }
        #expect(await model {}.isAlive())
        #expect(await !model { await untilCancelled() }.isAlive(within: .milliseconds(50)))
    }

    @Test func `without an admin section nothing of it is there`() async throws {
        let endpoint = try TokenEndpoint([.token(accessToken)])
        let with = try await AdministeredProxy(endpoint)
        let without = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0"}
            clients:
              api: {token_endpoint: "\(endpoint.url)", client_id: x, allow_plaintext: true}
            upstreams:
              - {host: api.test, client: api}
            """)
        #expect(try threads(of: with.proxy.process.pid).contains("admin\n"))
        #expect(try !threads(of: without.process.pid).contains("admin\n"))
        #expect(!without.log.contains("administration"))
    }
}
