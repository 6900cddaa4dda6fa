import TestSupport
import Testing

@Suite(
    "calls of gRPC reach a server of gRPC, over HTTP/2 by themselves", .stopsProxies, .serialized,
    .timeLimit(.minutes(2)))
struct GRPCTests {
    private struct Call {
        let client: RawClient

        /// One message in its frame (grpc/grpc, doc/PROTOCOL-HTTP2.md), in a chunk.
        func send(_ message: [UInt8]) async throws {
            let count = message.count
            let frame = [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + message
            try await client.send(Array("\(String(frame.count, radix: 16))\r\n".utf8) + frame + [13, 10])
        }

        func end() async throws { try await client.send("0\r\n\r\n") }
    }

    private func proxy(tls: Bool = false) async throws -> ProxyInProcess {
        try await ServerAndProxy("grpc_server.py", upstream: "", authority: tls ? try await PrivateCA() : nil).proxy
    }

    private func begin(_ method: String, _ proxy: ProxyInProcess, _ fields: String = "") async throws -> Call {
        let client = try await proxy.connect(
            sending: "POST http://two.test/test.Echo/\(method) HTTP/1.1\r\nHost: two.test\r\n"
                + "Content-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\(fields)\r\n")
        return Call(client: client)
    }

    private func call(_ method: String, _ message: [UInt8], _ proxy: ProxyInProcess) async throws -> RawResponse {
        let call = try await begin(method, proxy)
        try await call.send(message)
        try await call.end()
        return try await call.client.response()
    }

    @Test(arguments: [false, true])
    func `a call with one message each way arrives, with metadata at the end`(tls: Bool) async throws {
        let proxy = try await proxy(tls: tls)
        for _ in 0..<3 {
            let response = try await call("Unary", Array("hello".utf8), proxy)
            #expect(response.status == 200)
            #expect(response.text.hasSuffix("hello Bearer T1"))
            #expect(response.trailers.value("grpc-status") == "0")
            #expect(response.trailers.value("x-end") == "unary")
        }
    }

    @Test func `streams of messages pass in each direction`() async throws {
        let proxy = try await proxy()
        let down = try await call("Down", Array("300".utf8), proxy)
        #expect(down.text.hasSuffix("299"))
        #expect(down.trailers.value("grpc-status") == "0")
        let up = try await begin("Up", proxy)
        for _ in 0..<100 { try await up.send([UInt8](repeating: 0x61, count: 1000)) }
        try await up.end()
        #expect(try await up.client.response().text.hasSuffix("100000"))
        let both = try await begin("Both", proxy)
        for number in 0..<20 {
            try await both.send(Array("message \(number)".utf8))
            _ = try await both.client.read(until: "message \(number) Bearer T1")
        }
        try await both.end()
        _ = try await both.client.read(until: "grpc-status: 0")
    }

    @Test func `an answer larger than all windows arrives whole`() async throws {
        let proxy = try await proxy()
        let response = try await call("Large", [UInt8](repeating: 0x62, count: 20_000), proxy)
        #expect(response.body.count == 20_000_005)
        #expect(response.trailers.value("grpc-status") == "0")
    }

    @Test func `an error of a call without a body arrives with its message`() async throws {
        let proxy = try await proxy()
        let response = try await call("Fails", [], proxy)
        #expect(response.status == 200)
        #expect(response.field("grpc-status") == "5")
        #expect(response.field("grpc-message") == "nothing here: 100%25 sure")
    }

    @Test func `UNAUTHENTICATED without a body brings a new token, and the call is sent once more`() async throws {
        let proxy = try await proxy()
        let response = try await call("Picky", Array("x".utf8), proxy)
        #expect(response.text.hasSuffix("Bearer T2"))
        #expect(response.trailers.value("grpc-status") == "0")
    }

    @Test func `UNAUTHENTICATED at the end brings a new token for the next call`() async throws {
        let proxy = try await proxy()
        #expect(try await call("Late", [], proxy).trailers.value("grpc-status") == "16")
        try await eventually("a new token") {
            try await self.call("Late", [], proxy).trailers.value("grpc-status") == "0"
        }
    }

    @Test func `a caller that leaves cancels its call`() async throws {
        let running = try await ServerAndProxy("grpc_server.py", upstream: "")
        let call = try await begin("Waits", running.proxy)
        try await call.send([])
        try await call.end()
        try await eventually("the call is there") { running.server.output.contains("waiting") }
        call.client.resetOnClose()
        call.client.close()
        try await eventually("the server hears of it") { running.server.output.contains("left") }
    }

    @Test func `the proxy's own problems are answers of gRPC`() async throws {
        let proxy = try await ProxyInProcess(
            more: "- {host: two.test, url: 'http://127.0.0.1:\(try freePort())', client: api, allow_plaintext: true}")
        let response = try await call("Unary", [], proxy)
        #expect(response.status == 200)
        #expect(response.field("content-type") == "application/grpc")
        #expect(response.field("grpc-status") == "14")
        #expect(response.field("grpc-message")?.contains("The upstream refuses connections") == true)
        #expect(response.field("Proxy-Status")?.contains("connection_refused") == true)
    }
}
