import Reactor
import TestSupport

/// Echoes its input, on its own loop.
final class EchoServer: Sendable {
    let loop: EventLoop
    let accepted = Recorder<Int32>()
    private let address: SocketAddress
    private let acceptor: LoopBound<Acceptor>

    var port: UInt16 { address.port }

    /// - Parameter cutting: answers the first byte with a reset.
    init(_ wanted: SocketAddress, cutting: Bool = false) async throws {
        let loop = try EventLoop.start(name: "echo")
        self.loop = loop
        let listener = try ListeningSocket.open(wanted, sharesPort: false)
        address = listener.address
        let accepted = accepted
        acceptor = try await loop.run {
            let acceptor = try Acceptor(
                listener, on: loop,
                accepted: { socket in
                    accepted.append(socket.descriptor)
                    let connection = EchoConnection(socket, cutting: cutting)
                    try? socket.register(connection)
                }, failed: { _ in })
            return LoopBound(acceptor, on: loop)
        }
    }

    func stop() { loop.stop() }

    func pause() async { await on { $0.pause() } }
    func resume() async { await on { $0.resume() } }
    func close() async { await on { $0.close() } }

    private func on(_ body: @escaping @Sendable (Acceptor) -> Void) async {
        let acceptor = acceptor
        try? await loop.run { body(acceptor.value) }
    }
}

private final class EchoConnection: ReadinessHandler {
    private let socket: StreamSocket
    private let cuts: Bool
    private var buffer = ByteBuffer()
    private var hasEnded = false

    init(_ socket: StreamSocket, cutting: Bool) {
        self.socket = socket
        cuts = cutting
    }

    func ready(_ readiness: Readiness) {
        reading: while !hasEnded {
            switch socket.read(into: &buffer, limit: 64 * 1024) {
            case .bytes where cuts:
                socket.resetOnClose()
                return socket.close()
            case .bytes: continue
            case .wouldBlock: break reading
            case .endOfStream: hasEnded = true
            case .failed: return socket.close()
            }
        }
        while !buffer.isEmpty {
            // Now with one part, now with two: both must do the same.
            let result =
                buffer.count % 2 == 0
                ? socket.write(from: &buffer) : socket.write(from: &buffer, then: Span<UInt8>())
            switch result {
            case .bytes: continue
            case .wouldBlock: return
            case .endOfStream, .failed: return socket.close()
            }
        }
        if hasEnded { socket.close() }
    }
}
