import Foundation
import TestSupport
import Testing

@Suite("bad company", .timeLimit(.minutes(5)))
struct EnduranceTests {
    /// An origin's behaviour, chosen by the target's first number.
    private static func misbehave(_ exchange: OriginExchange) throws {
        switch exchange.head.target.dropFirst().prefix(1) {
        case "0": try exchange.respond(body: "ok")
        case "1":
            try exchange.startChunked()
            for _ in 0..<20 { try exchange.chunk(String(repeating: "c", count: 5000)) }
            try exchange.lastChunk()
        case "2": exchange.reset()
        case "3": exchange.close()
        case "4":
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nnot all")
            exchange.close()
        case "5":
            try exchange.startChunked()
            try exchange.chunk("not all")
            exchange.reset()
        case "6": try exchange.flood(4 << 20)
        case "7":
            exchange.pause(.milliseconds(100))
            try exchange.respond(body: "late")
        case "8":
            // An answer before the body was read.
            try exchange.send("HTTP/1.1 413 Early\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            exchange.close()
        default: try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nwhat?")
        }
    }

    /// A client's behaviour, chosen by `kind`.
    private static func visit(_ port: UInt16, target: String, kind: Int) async throws {
        let client = try await RawClient.connect(port: port)
        let head = "http://api.test/\(target) HTTP/1.1\r\nHost: api.test\r\n"
        switch kind {
        case 0, 1, 2:
            try await client.send("GET \(head)Connection: close\r\n\r\n")
            _ = try await client.readToEnd()
        case 3:
            try await client.send("POST \(head)Content-Length: 300000\r\nConnection: close\r\n\r\n")
            try? await client.send([UInt8](repeating: 0x61, count: 300_000))
            _ = try? await client.readToEnd()
        case 4:
            try await client.send("POST \(head)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            client.close()
        case 5:
            try await client.send("GET \(head)\r\n")
            client.resetOnClose()
        case 6:
            try await client.send("GET \(head)\r\n")
            _ = try? await client.read(count: 10, within: .seconds(10))
            client.close()
        case 7:
            try await client.send("GET http://api.te")
            client.close()
        case 8:
            try await client.send("POST \(head)Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n")
            _ = try? await client.readToEnd()
        default:
            // Two at once, and only the first is read.
            try await client.send("GET \(head)\r\nGET \(head)\r\n")
            _ = try? await client.response(within: .seconds(10))
            client.close()
        }
    }

    @Test(arguments: [1, 3])
    func `whatever clients and upstreams do, the proxy goes on and keeps nothing of it`(threads: Int) async throws {
        let origin = try RecordingOrigin { try Self.misbehave($0) }
        let proxy = try await RunningProxy(
            to: origin, proxy: "threads: \(threads)", upstream: "max_connection_age: 1s")
        // Each loop has asked the upstream once: libcurl's own descriptors come with the first connection.
        for _ in 0..<(threads == 1 ? 1 : 60) { #expect(try await proxy.get("http://api.test/0").status == 200) }
        let before = try? proxy.openFiles()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<600 {
                if number >= 40 { try await group.next() }
                group.addTask {
                    // Every pair of the two tables comes up, in an order that mixes them.
                    let pair = (number * 37) % 100
                    try await Self.visit(proxy.port, target: "\(pair / 10)/\(number)", kind: pair % 10)
                }
            }
            try await group.waitForAll()
        }
        #expect(proxy.process.ending == nil, "\(proxy.process.transcript)")
        for _ in 0..<20 { #expect(try await proxy.get("http://api.test/0").status == 200) }
        #expect(proxy.tokenRequests == 1)
        if let before {
            // Upstream connections that wait for the next request are kept on purpose.
            try await eventually("files are closed again") {
                try proxy.openFiles() <= before + origin.connections.filter { !$0.isOver }.count
            }
        }
        #expect(try await proxy.terminate() == .exited(0), "\(proxy.process.transcript)")
    }
}

extension RunningProxy {
    /// How many files and sockets it has open. Only root may ask that of a process that is not dumpable.
    fileprivate func openFiles() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd").count
    }
}
