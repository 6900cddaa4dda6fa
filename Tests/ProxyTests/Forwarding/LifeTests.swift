import Configuration
import Proxy
import TestSupport
import Testing

@Suite("connections begin, end and are counted", .stopsProxies, .timeLimit(.minutes(1)))
struct LifeTests {
    // MARK: Clients that leave

    @Test func `a client that leaves before the answer ends the exchange within a second`() async throws {
        let proxy = try await ProxyInProcess { _ = $0.waitForPeerToLeave() }
        let origin = proxy.origin
        let fastest = try await shortest(under: .seconds(1)) {
            let before = origin.requests.count
            var client: RawClient? = try await proxy.connect()
            try await client?.send(message())
            try await eventually("the request arrives") { origin.requests.count == before + 1 }
            client?.resetOnClose()
            client = nil
            return try await time(until: "the upstream's connection ends") { origin.connections.allSatisfy(\.isOver) }
        }
        #expect(fastest < .seconds(1))
    }

    @Test func `a client that leaves within the answer ends the exchange within a second`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked()
            try exchange.chunk("first")
            _ = exchange.waitForPeerToLeave()
        }
        let origin = proxy.origin
        let fastest = try await shortest(under: .seconds(1)) {
            var client: RawClient? = try await proxy.connect()
            try await client?.send(message())
            _ = try await client?.read(until: "first")
            client?.resetOnClose()
            client = nil
            return try await time(until: "the upstream's connection ends") { origin.connections.allSatisfy(\.isOver) }
        }
        #expect(fastest < .seconds(1))
    }

    @Test func `a client that leaves without reading an endless answer ends the exchange`() async throws {
        let proxy = try await ProxyInProcess { try $0.flood(1 << 30) }
        var client: RawClient? = try await proxy.connect(receiveBuffer: 4096)
        try await client?.send(message())
        _ = try await client?.read(count: 100)
        client?.resetOnClose()
        client = nil
        let origin = proxy.origin
        try await eventually("the upstream's connection ends", within: .seconds(5)) { origin.connections[0].isOver }
    }

    @Test func `a client that leaves while a token is fetched costs nobody anything`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token("T1")
        }
        let proxy = try await ProxyInProcess(endpoint: endpoint)
        var leaver: RawClient? = try await proxy.connect()
        try await leaver?.send(message("GET", "http://api.test/left"))
        _ = try await endpoint.requests(1)
        async let response = proxy.request("GET", "http://api.test/stayed")
        leaver?.resetOnClose()
        leaver = nil
        try await proxy.isCaughtUp()
        gate.open()
        #expect(try await response.status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["/stayed"])
        #expect(endpoint.requests.count == 1)
    }

    @Test func `a client that stops reading is cut off after idle_timeout, and its upstream let go`() async throws {
        let proxy = try await ProxyInProcess(proxy: "idle_timeout: 1s") { try $0.flood(1 << 30) }
        let client = try await proxy.connect(receiveBuffer: 4096, sending: message())
        _ = try await client.read(count: 100)
        try await eventually("the upstream's connection ends") { proxy.origin.connections[0].isOver }
        #expect(try await proxy.request("GET", "http://nobody.test/").status == 403)
    }

    @Test func `a client that reads slowly is not cut off`() async throws {
        let proxy = try await ProxyInProcess(proxy: "idle_timeout: 3s") { try $0.flood(3 << 20) }
        let client = try await proxy.connect(receiveBuffer: 4096, sending: message())
        _ = try await client.read(until: "\r\n\r\n")
        for _ in 0..<12 {
            _ = try await client.read(count: 1 << 18)
            // Time itself: each pause is short, all of them together are longer than idle_timeout.
            try await Task.sleep(for: .milliseconds(120))
        }
    }

    // MARK: Limits

    @Test func `past max_connections a client waits for a place`() async throws {
        // Busy ones: an idle connection gives its place up.
        let gate = Gate()
        defer { gate.open() }
        let proxy = try await ProxyInProcess(proxy: "max_connections: 3") { exchange in
            if exchange.head.target == "/busy" { gate.wait() }
            try exchange.respond(body: "ok")
        }
        var clients: [RawClient] = []
        for _ in 0..<3 {
            let client = try await proxy.connect(sending: message("GET", "http://api.test/busy"))
            clients.append(client)
        }
        try await eventually("three requests under way") { proxy.origin.requests.count == 3 }
        let fourth = try await proxy.connect(sending: message("GET", "http://api.test/fourth"))
        await #expect(throws: TestFailure.self) { try await fourth.response(within: .milliseconds(300)) }
        #expect(proxy.origin.requests.count == 3)
        clients[0].resetOnClose()
        clients.removeFirst()
        #expect(try await fourth.response().status == 200)
        // Again, after all clients have left.
        for client in clients + [fourth] { client.close() }
        for _ in 0..<10 { #expect(try await proxy.request().status == 200) }
    }

    @Test func `a thousand clients come and go, and leave nothing behind`() async throws {
        let proxy = try await ProxyInProcess()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    var served = 0
                    for _ in 0..<50 { served += try await proxy.request().status == 200 ? 1 : 0 }
                    return served
                }
            }
            var served = 0
            for try await count in group { served += count }
            #expect(served == 1000)
        }
        #expect(proxy.origin.requests.count == 1000)
        #expect(proxy.endpoint.requests.count == 1)
    }

    // MARK: One token for all

    @Test func `a hundred requests on a cold start are one token request`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            gate.wait()
            return .token("T\(number + 1)")
        }
        let proxy = try await ProxyInProcess(endpoint: endpoint)
        let statuses = try await proxy.statuses(of: 100) {
            _ = try await endpoint.requests(1)
            gate.open()
        }
        #expect(Set(statuses) == [200])
        #expect(endpoint.requests.count == 1)
        #expect(endpoint.requests.first?["grant_type"] == "client_credentials")
        #expect(proxy.origin.requests.allSatisfy { $0.authorization == ["Bearer T1"] })
        #expect(proxy.origin.requests.count == 100)
    }

    // MARK: Draining

    @Test func `draining does not wait for the first byte inside a CONNECT`() async throws {
        let proxy = try await ProxyInProcess(proxy: "header_timeout: 1h")
        let clients = [try await proxy.connect(), try await proxy.connect()]
        for client in clients {
            try await client.send(connectRequest("api.test:80"))
            #expect(try await client.response(to: "CONNECT").status == 200)
        }
        // One more comes to that point while the proxy drains.
        let late = try await proxy.connect(sending: "CONNECT api.test:80 HTTP/1.1\r\n")
        async let drained: Void = proxy.server.drain(within: .seconds(3600))
        for client in clients { #expect(try await client.readToEnd().isEmpty) }
        try await late.send("Host: api.test:80\r\n\r\n")
        #expect(try await late.response(to: "CONNECT").status == 200)
        #expect(try await late.readToEnd().isEmpty)
        await drained
    }

    @Test func `draining ends what is idle, finishes what is under way, and takes nothing new`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            if exchange.head.target == "/slow" { gate.wait() }
            try exchange.respond(body: "done")
        }
        let idle = try await proxy.connect(sending: message())
        #expect(try await idle.response().field("Connection") == nil)
        let busy = try await proxy.connect(sending: message("GET", "http://api.test/slow"))
        try await eventually("the slow request arrives") { proxy.origin.requests.count == 2 }
        async let drained: Void = proxy.server.drain(within: .seconds(20))
        #expect(try await idle.readToEnd().isEmpty)
        await #expect(throws: (any Error).self) { try await proxy.connect() }
        gate.open()
        let response = try await busy.response()
        #expect(response.text == "done")
        #expect(response.field("Connection") == "close")
        #expect(try await busy.readToEnd().isEmpty)
        await drained
    }

    @Test func `draining ends after its time, whatever is under way`() async throws {
        let proxy = try await ProxyInProcess { _ = $0.waitForPeerToLeave() }
        let client = try await proxy.connect(sending: message())
        try await eventually("the request arrives") { proxy.origin.requests.count == 1 }
        await proxy.server.drain(within: .milliseconds(100))
        let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 503 Send the request again: this proxy is stopping"), "\(answer)")
        try await eventually("the upstream's connection ends") { proxy.origin.connections[0].isOver }
    }

    // MARK: The log

    @Test func `the access log says what came, where it went and how it ended`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { exchange in
            if exchange.head.target.hasPrefix("/cut") {
                try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                return exchange.close()
            }
            try exchange.respond(201, body: "four")
        }
        _ = try await proxy.request("POST", "http://api.test/a?secret=1", body: "hello")
        _ = try await proxy.request("GET", "http://nobody.test/b")
        _ = try? await proxy.request("GET", "http://api.test/cut")
        _ = try await proxy.send("GET  / HTTP/1.1\r\n\r\n")
        try await eventually("four records") { proxy.log.all.count == 4 }
        let records = proxy.log.all
        func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
        #expect(records.map { text($0.method) } == ["POST", "GET", "GET", "GET"])
        #expect(records.map { text($0.path) } == ["/a", "/b", "/cut", ""])
        // Where it went; where it went nowhere, what was asked for.
        let destination = String(proxy.origin.url.dropFirst("http://".count))
        #expect(records.map { text($0.host) } == [destination, "nobody.test", destination, ""])
        #expect(records.map(\.status) == [201, 403, 0, 400])
        #expect(records.map(\.upstream) == ["api.test", nil, "api.test", nil])
        #expect(records.map(\.client) == ["api", nil, "api", nil])
        #expect(records[0].bytesReceived == 5)
        #expect(records[0].bytesSent > 4)
    }

    @Test func `the access log says 499 of a client that left`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { _ = $0.waitForPeerToLeave() }
        var client: RawClient? = try await proxy.connect()
        try await client?.send(message())
        try await eventually("the request arrives") { proxy.origin.requests.count == 1 }
        client?.resetOnClose()
        client = nil
        try await eventually("a record") { proxy.log.all.map(\.status) == [499] }
    }
}
