import HTTPServer
import Reactor
import Synchronization
import TLSServer
import TestSupport

/// An HTTP server over TLS on loopback, on its own loop. It answers with the body that it gets, else with the path.
final class SecureServer: Sendable {
    let hosts: Hosts
    let port: UInt16
    private let loop: EventLoop
    private let bound: LoopBound<Serving>
    private let heard: Heard

    private final class Heard: Sendable { let ends = Mutex<[HandshakeEnd]>([]) }

    /// - Parameters:
    ///   - limit: number of handshakes under way.
    ///   - idle: time between requests.
    init(limit: Int = 256, patience: Duration = .seconds(10), idle: Duration = .seconds(60)) async throws {
        let hosts = try await Hosts.make()
        let loop = try EventLoop.start(name: "secure-server")
        let socket = try ListeningSocket.open(
            SocketAddress(.ipv4(address: 0x7F00_0001, port: 0)), sharesPort: false)
        let heard = Heard()
        (self.hosts, self.loop, self.heard, port) = (hosts, loop, heard, socket.address.port)
        bound = try await loop.run {
            let secured = TLSServerLoop(on: loop, limit: limit, patience: patience)
            return LoopBound(
                try Serving(socket, loop, secured, idle, hosts) { end in heard.ends.withLock { $0.append(end) } },
                on: loop)
        }
    }

    deinit { loop.stop() }

    /// How handshakes ended so far.
    var ends: [HandshakeEnd] { heard.ends.withLock { $0 } }

    /// Number of connections.
    func count() async throws -> Int { try await loop.run { [bound] in bound.value.server.count } }

    private final class Serving {
        private(set) var server: ServerLoop!
        private var acceptor: Acceptor!

        init(
            _ socket: ListeningSocket, _ loop: EventLoop, _ secured: TLSServerLoop, _ idle: Duration, _ hosts: Hosts,
            _ report: @escaping (HandshakeEnd) -> Void
        ) throws {
            var settings = ServerSettings()
            settings.idleTimeout = Timeout(idle)
            settings.maxConnections = 4096
            server = ServerLoop(settings, on: loop, acceptFailed: { _ in }) { connection in
                AsyncExchange(connection, maxBodyBytes: 16 << 20) { request in
                    ServerResponse(
                        status: 200, body: .whole(request.body.isEmpty ? Array(request.path.utf8) : request.body))
                }
            }
            acceptor = try Acceptor(
                socket, on: loop,
                accepted: { [unowned self] carrier in
                    let stream = try? TLSServerStream(
                        on: carrier, server: secured, choose: { ContextChoice(hosts.context($0)) }, report: report)
                    stream.map { server.serve($0, listener: 0) } ?? carrier.close()
                }, failed: { _ in })
        }
    }
}
