import TestSupport
import Testing

@Suite(
    "connections with HTTP/2 to upstreams, from the first request to the last", .stopsProxies, .serialized,
    .timeLimit(.minutes(3)))
struct HTTP2SessionTests {
    @Test func `streams above the number of a GOAWAY go out once more, the others finish`() async throws {
        let running = try await ServerAndProxy("h2_server.py")
        var held: [RawClient] = []
        for count in 1...3 { held.append(try await running.begin("/hold", expecting: count)) }
        #expect(try await running.connection("/goaway") == "2")
        try await eventually("the other two come again") { running.requests("/hold") == 5 }
        try await running.release()
        var connections: [String] = []
        for client in held { connections.append(try await client.response().text) }
        #expect(connections == ["1", "2", "2"])
        // Behind its last stream.
        try await running.says("1 closed")
        #expect(try await running.connection("/x") == "2")
    }

    @Test func `a GOAWAY behind an answer ends the connection, and the next request has another one`() async throws {
        let running = try await ServerAndProxy("h2_server.py")
        #expect(try await running.connection("/bye") == "1")
        try await running.says("1 closed")
        #expect(try await running.connection("/x", "POST") == "2")
    }

    @Test func `a connection that has ended without a word is noticed before the next request`() async throws {
        let running = try await ServerAndProxy("h2_server.py")
        #expect(try await running.connection("/close") == "1")
        let client = try await running.proxy.connect()
        // The end and the request are found in one turn.
        let held = Gate()
        await running.proxy.holdLoop(until: held)
        try await client.send("POST http://two.test/x HTTP/1.1\r\nHost: two.test\r\nContent-Length: 0\r\n\r\n")
        try await client.isDelivered()
        try await running.says("1 closed")
        held.open()
        #expect(try await client.response(to: "POST").text == "2")
        #expect(running.requests("/x") == 1)
    }

    @Test func `a connection past its age finishes its streams and takes no other`() async throws {
        let running = try await ServerAndProxy(
            "h2_server.py", upstream: "http2: prior-knowledge\nmax_connection_age: 1s")
        let held = try await running.begin("/hold")
        try await eventually("another connection") { try await running.connection("/x") != "1" }
        try await running.release()
        #expect(try await held.response().text == "1")
        try await running.says("1 goaway 0")
        try await running.says("1 closed")
    }

    @Test func `the server's number of streams holds, and connections beyond it`() async throws {
        let running = try await ServerAndProxy(
            "h2_server.py", ["--streams", "2"], upstream: "http2: prior-knowledge\nmax_connections: 2")
        // The server's number is known behind the first answer.
        #expect(try await running.connection("/x") == "1")
        var held: [RawClient] = []
        for count in 1...4 { held.append(try await running.begin("/hold", expecting: count)) }
        let last = try await running.proxy.connect(
            sending: "GET http://two.test/last HTTP/1.1\r\nHost: two.test\r\n\r\n")
        for number in 1...2 {
            #expect(running.count("\(number) GET /hold") == 2)
        }
        #expect(running.requests("/last") == 0)
        try await running.release()
        for client in held { #expect(try await client.response().status == 200) }
        #expect(try await last.response().status == 200)
        // The request that waited cost no connection.
        #expect(!running.server.output.contains("3 ") && !running.server.output.contains("closed"))
    }

    @Test func `a number of streams that is lowered later holds, too`() async throws {
        let running = try await ServerAndProxy("h2_server.py")
        #expect(try await running.connection("/lower") == "1")
        let first = try await running.begin("/hold")
        let second = try await running.begin("/hold", expecting: 2)
        try await running.says("2 GET /hold")
        try await running.release()
        #expect(try await first.response().text == "1")
        #expect(try await second.response().text == "2")
    }

    @Test func `a request that gets no stream in time is a 503`() async throws {
        let running = try await ServerAndProxy(
            "h2_server.py", ["--streams", "1"],
            upstream: "http2: prior-knowledge\nmax_connections: 1\nconnect_timeout: 1s")
        #expect(try await running.connection("/x") == "1")
        let held = try await running.begin("/hold")
        for _ in 0..<2 {
            let response = try await running.proxy.request("GET", "http://two.test/y")
            #expect(response.status == 503)
            #expect(response.field("Proxy-Status")?.contains("connection_limit_reached") == true)
        }
        try await running.release()
        #expect(try await held.response().text == "1")
        #expect(try await running.connection("/y") == "1")
    }

    @Test(arguments: ["/early", "/early-0"])
    func `an early answer is whole, and ends the upload`(path: String) async throws {
        let running = try await ServerAndProxy("h2_server.py")
        let client = try await running.proxy.connect(
            sending: "POST http://two.test\(path) HTTP/1.1\r\nHost: two.test\r\nContent-Length: 100000000\r\n\r\n")
        try await client.send([UInt8](repeating: 0x61, count: 100_000))
        let response = try await client.response(to: "POST")
        #expect(response.status == 413)
        #expect(response.text == "1")
        // The connection lives.
        #expect(try await running.connection("/x") == "1")
        if path == "/early" { try await running.says("1 reset 0") }
    }

    // MARK: Bounds

    @Test func `a client that reads nothing holds its stream, and no other one`() async throws {
        let running = try await ServerAndProxy("h2_server.py")
        let slow = try await running.proxy.connect(
            receiveBuffer: 4096, sending: "GET http://two.test/large HTTP/1.1\r\nHost: two.test\r\n\r\n")
        _ = try await slow.read(until: "\r\n\r\n")
        let fast = try await running.proxy.connect()
        for _ in 0..<2 {
            try await fast.send("GET http://two.test/large HTTP/1.1\r\nHost: two.test\r\n\r\n")
            #expect(try await fast.response(within: .seconds(60)).body.count == 32 << 20)
        }
        #expect(try await running.connection("/x") == "1")
        #expect(try await slow.read(count: 32 << 20, within: .seconds(60)).count == 32 << 20)
    }
}

extension ServerAndProxy {
    /// Begins a request, and waits until the server has it.
    fileprivate func begin(_ path: String, expecting count: Int = 1) async throws -> RawClient {
        let client = try await proxy.connect(
            sending: "GET http://two.test\(path) HTTP/1.1\r\nHost: two.test\r\n\r\n")
        try await eventually("\(count) requests for \(path)") { requests(path) >= count }
        return client
    }

    /// The connection that answers.
    fileprivate func connection(_ path: String, _ method: String = "GET") async throws -> String {
        try await proxy.request(method, "http://two.test\(path)").text
    }

    fileprivate func requests(_ path: String) -> Int {
        server.output.split(separator: "\n").count { $0.hasSuffix(" \(path)") }
    }

    fileprivate func says(_ line: String) async throws {
        try await eventually("the server says \(line)") { server.output.contains("\n\(line)\n") }
    }

    fileprivate func release() async throws {
        let control = try await RawClient.connect(port: port)
        try await control.send("release\n")
        _ = try await control.read(until: "released")
    }
}
