import Configuration
import HTTPMessage
import Heimdallr
import Proxy
import Reports
import TestSupport
import Testing

@Suite("a gRPC call gets what gRPC expects", .stopsProxies, .timeLimit(.minutes(1)))
struct CallTests {
    /// Expects a status alone, with nothing behind its head.
    private func expectStatus(_ response: RawResponse, _ status: String, _ error: String, _ message: String) {
        #expect(response.status == 200)
        #expect(response.field("Content-Type") == "application/grpc")
        #expect(response.field("grpc-status") == status)
        #expect(response.field("grpc-message")?.contains(message) == true, "\(response.field("grpc-message") ?? "")")
        #expect(response.field("Proxy-Status") == "heimdallr-proxy; error=\(error)")
        #expect(response.body.isEmpty && response.trailers.isEmpty)
    }

    @Test func `a call to a host that no upstream names gets PERMISSION_DENIED`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true)
        expectStatus(
            try await proxy.send(call("http://nobody.test/a/B")), "7", "http_request_denied",
            "No upstream for this host. The configuration names no upstream for nobody.test:80.")
        try await eventually("the record") { proxy.log.all.count == 1 }
        #expect(proxy.log.all.first?.grpcStatus == 7)
        #expect(proxy.log.all.first?.status == 200 && proxy.log.all.first?.reason == "no-upstream")
    }

    @Test func `a call to an upstream that is down gets UNAVAILABLE`() async throws {
        let proxy = try await ProxyInProcess(more: "- host: down.test\n  url: http://127.0.0.1:\(try freePort())")
        let response = try await proxy.send(call("http://down.test/a/B"))
        expectStatus(response, "14", "connection_refused", "The upstream refuses connections.")
        #expect(response.field("Content-Length") == "0")
    }

    @Test func `a call without a token gets UNAVAILABLE, with the time of the next try`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "token_wait: 300ms", endpoint: try TokenEndpoint { _, _ in .status(503) })
        let response = try await proxy.send(call())
        expectStatus(response, "14", "proxy_internal_response", "No valid token.")
        #expect(response.field("Retry-After") != nil)
    }

    @Test func `a call without a user of the proxy gets UNAUTHENTICATED`() async throws {
        let proxy = try await ProxyInProcess(proxy: "users: {a: b}")
        let response = try await proxy.send(call())
        expectStatus(response, "16", "http_request_denied", "The proxy requires a name and password.")
        #expect(response.field("Proxy-Authenticate") == nil)
    }

    @Test func `a call that is not answered in the configured time gets DEADLINE_EXCEEDED`() async throws {
        let proxy = try await ProxyInProcess(upstream: "response_timeout: 300ms") { _ = $0.waitForPeerToLeave() }
        expectStatus(
            try await proxy.send(call()), "4", "http_response_timeout", "The upstream did not answer in time.")
    }

    @Test func `the upstream of a call hears that trailers are welcome`() async throws {
        let proxy = try await ProxyInProcess { try $0.answer(status: 0) }
        _ = try await proxy.send(
            message("POST", fields: ["Content-Type: application/grpc"], body: "\0\0\0\0\0"))
        let request = try #require(proxy.origin.requests.first)
        #expect(request.values("TE") == ["trailers"] && request.values("Connection") == ["TE"])
    }

    @Test func `gRPC calls are counted by their status`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            let status = Int(exchange.head.target.dropFirst()) ?? 0
            if status == 0 { try exchange.answer(status: 0) } else { try exchange.status(status) }
        }
        for status in [0, 0, 5, 16, 40, 999] { _ = try await proxy.send(call("http://api.test/\(status)")) }
        _ = try await proxy.send(call("http://nobody.test/"))
        _ = try await proxy.request()
        let traffic = await proxy.server.traffic()
        func calls(_ name: String) -> [[Int]] {
            let rows = traffic.upstreams.first { $0.name == name }?.calls.rows ?? []
            return rows.map { [$0.code, Int($0.count)] }
        }
        #expect(calls("api.test") == [[0, 2], [5, 1], [16, 1], [17, 2]])
        #expect(calls("(none)") == [[7, 1]])
    }

    // MARK: Deadlines

    @Test func `a silent gRPC stream has no deadline, unless the configuration says one`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess(
            answer: { exchange in
                try exchange.readBody()
                try exchange.startChunked(fields: [("Content-Type", exchange.head.field("Content-Type") ?? "")])
                try exchange.chunk("one")
                gate.wait()
                try exchange.chunk("two")
                try exchange.lastChunk(trailers: [("grpc-status", "0")])
            },
            // As if the default of 60 s were short.
            change: {
                $0.upstreams[0].idleTimeout = .milliseconds(300)
                $0.upstreams[0].responseTimeout = .milliseconds(300)
            })
        let stream = try await proxy.connect(sending: call())
        _ = try await stream.read(until: "one")
        let other = try await proxy.connect(sending: call(type: "text/plain"))
        #expect(try await other.readToEnd().suffix(5) == Array("one\r\n".utf8), "cut by the deadline of other requests")
        gate.open()
        #expect(try await stream.read(until: "grpc-status: 0\r\n\r\n").contains("two"))
    }

    @Test func `idle_timeout, where it is written, holds for gRPC, too`() async throws {
        let proxy = try await ProxyInProcess(upstream: "idle_timeout: 300ms") { exchange in
            try exchange.readBody()
            try exchange.startChunked()
            try exchange.chunk("one")
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect(sending: call())
        #expect(try await client.readToEnd().suffix(5) == Array("one\r\n".utf8))
    }

    @Test func `a program that is silent in its stream has no deadline, either`() async throws {
        let proxy = try await ProxyInProcess(proxy: "idle_timeout: 300ms") { exchange in
            let body = try exchange.readBody()
            try exchange.respond(body: "got \(body.bodyCount)")
        }
        func begin(_ type: String) async throws -> RawClient {
            let client = try await proxy.connect(
                sending: "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Type: \(type)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
            return client
        }
        let stream = try await begin("application/grpc")
        let other = try await begin("text/plain")
        #expect(try await other.response().status == 408)
        try await stream.send("2\r\ncd\r\n0\r\n\r\n")
        #expect(try await stream.response().text == "got 4")
    }
}
