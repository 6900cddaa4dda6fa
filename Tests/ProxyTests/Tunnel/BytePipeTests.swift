import Proxy
import Reports
import Synchronization
import TestSupport
import Testing

@Suite("tunnels and upgraded connections carry what both sides say", .stopsProxies, .timeLimit(.minutes(1)))
struct BytePipeTests {
    @Test(arguments: BytePipe.Kind.allCases)
    func `bytes of a tunnel or an upgrade pass as they are, both ways`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind)
        let (client, end) = try await pipe.open()
        let bytes = (0...255).map { UInt8($0) }
        for _ in 0..<3 {
            try await client.send(bytes)
            #expect(try await end.read(count: 256) == bytes)
            try await end.send(bytes.reversed())
            #expect(try await client.read(count: 256) == bytes.reversed())
        }
        #expect(pipe.proxy.endpoint.requests.count == (kind == .tunnel ? 0 : 1))
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `megabytes pass each way at once, whole and in order`(kind: BytePipe.Kind) async throws {
        let (client, end) = try await BytePipe(kind).open()
        let up = pattern(4 << 20, step: 31)
        let down = pattern(4 << 20, step: 57)
        async let sentUp: Void = client.send(up)
        async let sentDown: Void = end.send(down)
        async let receivedUp = end.read(count: up.count)
        async let receivedDown = client.read(count: down.count)
        #expect(try await receivedUp == up)
        #expect(try await receivedDown == down)
        _ = try await (sentUp, sentDown)
    }

    @Test(arguments: BytePipe.Kind.allCases, [true, false])
    func `a reader that stops reading stops the writer`(kind: BytePipe.Kind, clientReads: Bool) async throws {
        let (client, end) = try await BytePipe(kind).open()
        let writer = clientReads ? end : client
        let reader = clientReads ? client : end
        let sent = Mutex(0)
        let piece = [UInt8](repeating: 7, count: 1 << 20)
        await #expect(throws: (any Error).self) {
            for _ in 0..<256 {
                try await writer.send(piece, within: .milliseconds(800))
                sent.withLock { $0 += 1 }
            }
        }
        // At most the bytes in the kernel's buffers.
        #expect(sent.withLock { $0 } < 64)
        // The other direction is free.
        try await reader.send("hello")
        #expect(try await writer.read(count: 5) == Array("hello".utf8))
        // And it goes on when it is read.
        _ = try await reader.read(count: sent.withLock { $0 } << 20)
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `the access log and the metrics count a pipe's bytes, the metrics as they go`(kind: BytePipe.Kind) async throws
    {
        let pipe = try await BytePipe(kind, isLogged: true)
        let (client, end) = try await pipe.open()
        try await client.send(Array(repeating: 1, count: 1000))
        _ = try await end.read(count: 1000)
        try await end.send(Array(repeating: 1, count: 3000))
        _ = try await client.read(count: 3000)
        var traffic = try await pipe.traffic()
        #expect((traffic.bytesSent, traffic.bytesReceived) == (1000, 3000))
        #expect(await pipe.inFlight == 1)
        #expect(pipe.proxy.log.all.isEmpty)
        try await client.send("x")
        _ = try await end.read(count: 1)
        end.close()
        _ = try await client.readToEnd()
        client.close()
        try await eventually("its record") { pipe.proxy.log.all.count == 1 }
        let record = pipe.proxy.log.all[0]
        #expect((record.status, record.bytesReceived, record.bytesSent) == (kind.status, 1001, 3000))
        switch kind {
        case .tunnel:
            #expect(String(decoding: record.method, as: UTF8.self) == "CONNECT")
            #expect(String(decoding: record.host, as: UTF8.self) == "127.0.0.1:\(pipe.far.port)")
            #expect((record.upstream, record.client) == (nil, nil))
        case .upgrade: #expect((record.upstream, record.client) == ("ws.test", "api"))
        }
        traffic = try await pipe.traffic()
        #expect((traffic.bytesSent, traffic.bytesReceived) == (1001, 3000))
        #expect(traffic.requests[kind.status] == 1)
        #expect(await pipe.inFlight == 0)
    }
}
