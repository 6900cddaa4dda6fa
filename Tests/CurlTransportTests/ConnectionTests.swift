import CurlTransport
import TestSupport
import Testing

@Suite("connections are kept, counted, aged and never trusted when they are dead", .timeLimit(.minutes(1)))
struct ConnectionTests {
    @Test func `one connection serves one exchange after the other`() async throws {
        let origin = try RecordingOrigin()
        let rig = try await Rig()
        for _ in 0..<10 { #expect(try await rig.send(Request(origin)).error == nil) }
        #expect(origin.connections.count == 1)
        #expect(origin.requests.count == 10)
    }

    @Test func `connections of one pool are not another's`() async throws {
        let origin = try RecordingOrigin()
        for _ in 0..<3 { #expect(try await Rig().send(Request(origin)).error == nil) }
        #expect(origin.connections.count == 3)
    }

    @Test func `a fresh connection when asked for, and as usual afterwards`() async throws {
        let origin = try RecordingOrigin()
        let rig = try await Rig()
        var fresh = Request(origin)
        fresh.fresh = true
        for request in [Request(origin), fresh, fresh, Request(origin), Request(origin)] {
            #expect(try await rig.send(request).error == nil)
        }
        #expect(Set(origin.requests.map(\.connection)).count == 3)
        #expect(origin.requests[3].connection == origin.requests[4].connection)
    }

    @Test func `a connection past max_connection_age is not used again`() async throws {
        let origin = try RecordingOrigin()
        let rig = try await Rig { $0.maxConnectionAge = .seconds(1) }
        #expect(try await rig.send(Request(origin)).error == nil)
        #expect(try await rig.send(Request(origin)).error == nil)
        // libcurl counts whole seconds.
        try await Task.sleep(for: .milliseconds(2100))
        #expect(try await rig.send(Request(origin)).error == nil)
        #expect(origin.requests.map(\.connection) == [0, 0, 1])
    }

    @Test func `past max_connections exchanges wait their turn`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/held" { gate.wait() }
            try exchange.respond(body: "ok")
        }
        let rig = try await Rig { $0.maxConnections = 2 }
        let held = [
            try await rig.start(Request(origin, "GET", "/held")), try await rig.start(Request(origin, "GET", "/held")),
        ]
        var waiting: [Probe] = []
        for number in 0..<10 { waiting.append(try await rig.start(Request(origin, "GET", "/\(number)"))) }
        try await eventually("both at the origin") { origin.requests.count == 2 }
        #expect(try await rig.load() == 12)
        // One that leaves the queue is never sent.
        try await waiting[4].cancel()
        gate.open()
        for probe in held { #expect(try await probe.ended().text == "ok") }
        for (number, probe) in waiting.enumerated() where number != 4 {
            #expect(try await probe.ended().text == "ok")
        }
        #expect(origin.connections.count == 2)
        #expect(Set(origin.requests.map(\.target)) == Set(["/held"] + (0..<10).filter { $0 != 4 }.map { "/\($0)" }))
        #expect(waiting[4].record.ends == 0)
        #expect(try await rig.load() == 0)
    }

    @Test func `and not for ever`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let rig = try await Rig {
            $0.maxConnections = 1
            $0.connectTimeout = .milliseconds(300)
        }
        let first = try await rig.start(Request(origin))
        try await eventually("the first at the origin") { origin.requests.count == 1 }
        let others = [try await rig.start(Request(origin)), try await rig.start(Request(origin))]
        for other in others { #expect(try await other.ended().error?.kind == .connectionLimit) }
        #expect(first.record.ends == 0)
        #expect(origin.requests.count == 1)
        try await first.cancel()
        let other = try RecordingOrigin()
        #expect(try await rig.send(Request(other)).text == "ok")
    }

    @Test(arguments: ["GET", "POST", "PUT"])
    func `a request on a connection that dies is not sent again in silence`(method: String) async throws {
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/dies" { return exchange.reset() }
            try exchange.respond(body: "ok")
        }
        let rig = try await Rig()
        #expect(try await rig.send(Request(origin)).text == "ok")
        var request = Request(origin, method, "/dies")
        if method == "PUT" { request.upload = .bytes([1, 2, 3]) }
        let record = try await rig.send(request)
        #expect(record.error?.kind == .connectionLost)
        #expect(origin.requests.map(\.target) == ["/", "/dies"])
        #expect(origin.requests.last?.connection == 0)
        #expect(try await rig.send(Request(origin)).text == "ok")
    }

    @Test func `a server that closes idle connections is dialled again, and the loop rests`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(body: "ok")
            exchange.close()
        }
        let rig = try await Rig()
        for number in 0..<3 {
            #expect(try await rig.send(Request(origin, "POST")).text == "ok")
            try await eventually("the connection is over") { origin.connections[number].isOver }
        }
        #expect(origin.requests.count == 3)
        #expect(try await rig.rests())
    }

    @Test func `an idle connection that speaks is ended, and its words are nobody's answer`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(body: "mine")
            guard exchange.head.connection == 0 else { return }
            gate.wait()
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        }
        let rig = try await Rig()
        #expect(try await rig.send(Request(origin)).text == "mine")
        gate.open()
        try await eventually("the connection is over") { origin.connections[0].isOver }
        for _ in 0..<3 { #expect(try await rig.send(Request(origin, "POST")).text == "mine") }
        #expect(origin.requests.map(\.connection) == [0, 1, 1, 1])
    }

    @Test func `the same over TLS`() async throws {
        // nginx says Close Notify and leaves when its keep-alive time is over.
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: Nginx.sayWhatArrived + "\nkeepalive_timeout 100ms;")
        let file = authority.certificateFile
        let rig = try await Rig { $0.trustAnchors = .only(file: file) }
        for _ in 0..<3 {
            #expect(try await rig.send(Request(.secure(nginx.httpsPort), "POST")).error == nil)
            try await Task.sleep(for: .milliseconds(250))
        }
        #expect(try await rig.rests())
    }

    @Test func `bytes behind an answer are nobody's answer`() async throws {
        let origin = try RecordingOrigin { exchange in
            let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine\(poison)")
        }
        let rig = try await Rig()
        for _ in 0..<20 { #expect(try await rig.send(Request(origin)).text == "mine") }
    }

    @Test func `Connection: close is kept to`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(fields: [("Connection", "close")], body: "ok")
            _ = exchange.waitForPeerToLeave(within: .seconds(5))
        }
        let rig = try await Rig()
        for _ in 0..<3 { #expect(try await rig.send(Request(origin)).text == "ok") }
        #expect(origin.connections.count == 3)
    }
}
