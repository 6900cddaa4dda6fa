import TLSServer
import TestSupport
import Testing

@Suite("Many clients that begin and stop hold nothing up", .timeLimit(.minutes(2)))
struct CrowdTests {
    @Test func `a thousand handshakes begun and left make room for one that goes on`() async throws {
        let server = try await SecureServer(limit: 64, patience: .seconds(300))
        let hello = try MemoryClient()
        hello.goOn()
        let bytes = hello.take()
        var clients: [RawClient] = []
        for index in 0..<1000 {
            let client = try await RawClient.connect(port: server.port)
            // Some say nothing, some a part, some all of the first flight.
            try await client.send(Array(bytes.prefix(index % 3 * bytes.count / 2)))
            clients.append(client)
        }
        #expect(try await get(server) == "/")
        try await eventually("room") { server.ends.count { $0 == .abandoned } >= 1000 - 64 }
        try await eventually("few connections") { try await server.count() <= 65 }
        withExtendedLifetime(clients) {}
    }

    @Test func `handshakes that do not go on are ended after their time`() async throws {
        let server = try await SecureServer(patience: .milliseconds(300))
        var clients: [RawClient] = []
        for _ in 0..<20 { clients.append(try await RawClient.connect(port: server.port)) }
        for client in clients { #expect(try await client.readToEnd().isEmpty) }
        #expect(server.ends == [HandshakeEnd](repeating: .abandoned, count: 20))
        try await eventually("no connection") { try await server.count() == 0 }
        #expect(try await get(server) == "/")
    }

    private func get(_ server: SecureServer) async throws -> String {
        try await ChildProcess.output(of: [
            "curl", "-sS", "--max-time", "20", "--cacert", server.hosts.authority.certificateFile,
            "https://localhost:\(server.port)/",
        ])
    }
}
