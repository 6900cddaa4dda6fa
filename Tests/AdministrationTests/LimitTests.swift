import TestSupport
import Testing

@Suite("what one reader may cost", .timeLimit(.minutes(2)))
struct LimitTests {
    @Test func `a head or a body that is too large ends the connection`() async throws {
        let admin = try await AdministeredProxy()
        let line = "X: \(String(repeating: "x", count: 4000))\r\n"
        for request in [
            "GET /status HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: line, count: 8))\r\n",
            "GET /status HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 40_000))\r\n\r\n",
            "GET /status HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: "X: y\r\n", count: 500))\r\n",
            "GET /status?\(String(repeating: "x", count: 200_000)) HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n\(String(repeating: "x", count: 200_000))",
        ] {
            let client = try await RawClient.connect(port: admin.adminPort)
            try? await client.send(request)
            let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(!answer.hasPrefix("HTTP/1.1 200"), "\(request.prefix(60)) \(request.utf8.count)")
        }
        #expect(try await admin.get("/livez").status == 200)
    }

    @Test func `a request that does not come whole is not waited for`() async throws {
        let admin = try await AdministeredProxy()
        let silent = try await RawClient.connect(port: admin.adminPort)
        let half = try await RawClient.connect(port: admin.adminPort)
        try await half.send("GET /status HTTP/1.1\r\nHost: loc")
        let bodyless = try await RawClient.connect(port: admin.adminPort)
        try await bodyless.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")
        let idle = try await RawClient.connect(port: admin.adminPort)
        try await idle.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try await idle.response().status == 200)
        let socket = try await RawClient.connect(unix: admin.socket)
        for client in [silent, half, bodyless, idle, socket] {
            _ = try await client.readToEnd(within: .seconds(40))
        }
    }

    @Test func `so many readers of events, and no more`() async throws {
        let admin = try await AdministeredProxy()
        var readers: [RawClient] = []
        // Those who are gone, or never wanted the body, take no place.
        for _ in 0..<40 { #expect(try await admin.send("HEAD", "/events").status == 200) }
        for _ in 0..<32 {
            let reader = try await RawClient.connect(port: admin.adminPort)
            try await reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try await reader.read(until: "retry: 3000")
            readers.append(reader)
        }
        #expect(try await admin.get("/events").status == 503)
        #expect(try await admin.get("/livez").status == 200)
    }
}
