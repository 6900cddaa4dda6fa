import CurlTransport
import Proxy
import Reactor
import TestSupport
import Testing

@Suite("requests never come back to this process", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct OwnListenerTests {
    /// Stands for the admin port: a listener in this process.
    private func proxy(_ more: String = "", admin: RecordingOrigin) async throws -> ProxyInProcess {
        let proxy = try await ProxyInProcess(
            proxy: "unmatched: forward\nprivate_networks: [0.0.0.0/0, \"::/0\"]\nconnect: tunnel\ntunnels: [\"*\"]",
            more: more)
        proxy.server.own.add(SocketAddress(.ipv4(address: 0x7f00_0001, port: admin.port)))
        return proxy
    }

    @Test(arguments: ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"])
    func `a listener that began later counts as the proxy's own, too`(host: String) async throws {
        let admin = try RecordingOrigin()
        let proxy = try await proxy(
            "- host: round.test\n  url: http://\(host):\(admin.port)\n  allow_plaintext: true", admin: admin)
        try expectProblem(
            try await proxy.request("GET", "http://\(host):\(admin.port)/status"), "loop", upstream: "unmatched")
        try expectProblem(try await proxy.request("GET", "http://round.test/status"), "loop", upstream: "round.test")
        let tunnel = try await proxy.send(
            "CONNECT \(host):\(admin.port) HTTP/1.1\r\nHost: \(host):\(admin.port)\r\n\r\n", method: "CONNECT")
        #expect(tunnel.status == 508)
        #expect(admin.connections.isEmpty)
    }
}
