import TestSupport
import Testing

@Suite("POST /quitquitquit", .timeLimit(.minutes(2)))
struct QuitTests {
    @Test func `quitquitquit is not there unless the configuration says so`() async throws {
        for admin in ["", "quitquitquit: false"] {
            let proxy = try await AdministeredProxy(admin: admin)
            #expect(try await proxy.send("POST", "/quitquitquit").status == 404)
            #expect(try await proxy.get("/livez").status == 200)
        }
    }

    @Test func `quitquitquit ends the proxy as SIGTERM does, and a second one cuts nothing`() async throws {
        let gate = Gate()
        let slow = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond(body: "late")
        }
        defer { gate.open() }
        let busy = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), admin: "quitquitquit: true",
            more: "  - {host: slow.test, url: \"\(slow.url)\", allow_plaintext: true}")
        #expect(try await busy.get("/quitquitquit").status == 404)
        async let answer = busy.proxy.get("http://slow.test/")
        _ = try await eventually("the request is under way") { slow.requests.isEmpty ? nil : true }
        for _ in 0..<3 {
            let quit = try await busy.send("POST", "/quitquitquit")
            #expect(quit.status == 200)
            #expect(quit.text == "stopping\n")
        }
        try await eventually("it is not ready") { try await busy.get("/readyz").status == 503 }
        #expect(busy.proxy.process.ending == nil)
        gate.open()
        #expect(try await answer.text == "late")
        #expect(try await busy.proxy.process.ended() == .exited(0))
    }

    @Test func `quitquitquit is refused to pages of other sites, and to callers without the token`() async throws {
        let open = try await AdministeredProxy(admin: "quitquitquit: true")
        for fields in [[("Origin", "https://evil.example")], [("Sec-Fetch-Site", "cross-site")]] {
            #expect(try await open.send("POST", "/quitquitquit", fields).status == 403)
        }
        #expect(try await open.send("POST", "/quitquitquit", host: "evil.example").status == 403)
        let closed = try await AdministeredProxy(admin: "quitquitquit: true\ntoken: {file: FOLDER/admin-token}")
        #expect(try await closed.send("POST", "/quitquitquit").status == 401)
        let fields = [("Authorization", "Bearer \(adminToken)")]
        #expect(try await closed.send("POST", "/quitquitquit", fields).status == 200)
        #expect(try await closed.proxy.process.ended() == .exited(0))
        #expect(try await open.get("/livez").status == 200)
    }
}
