import Configuration
import CurlTransport
public import HTTPMessage
public import Reactor

/// Listeners of an enclosure that each lead to one address outside, byte for byte, without a token: `exec --allow`.
///
/// An address is dialled as soon as the program has connected, because the servers of some protocols speak first.
public final class AllowedTunnels: Sendable {
    /// A socket of the enclosure, and the address that its connections are for.
    public struct Target: Sendable {
        public let socket: PassedSocket
        public let address: Authority

        public init(socket: PassedSocket, address: Authority) {
            self.socket = socket
            self.address = address
        }
    }

    private let state: LoopBound<AllowedListeners>

    /// Starts to accept.
    /// - Parameter failed: called on the loop for an address that can't be reached, with the reason.
    /// - Throws: `SystemError` without free descriptors.
    public init(
        _ targets: [Target], on loop: EventLoop,
        failed: @escaping @Sendable (Authority, _ reason: String) -> Void
    ) async throws {
        state = try await loop.run {
            LoopBound(try AllowedListeners(targets, on: loop, failed: failed), on: loop)
        }
    }

    /// Closes the listeners. Open connections go on.
    public func stop() { state.loop.execute { [state] in state.value.stop() } }
}

/// Loop's thread only.
private final class AllowedListeners {
    private let loop: EventLoop
    private let dialer: Dialer
    private var acceptors: [Acceptor] = []
    private var connections: [ObjectIdentifier: AllowedConnection] = [:]
    private let failed: (Authority, String) -> Void

    /// Limit of connections. Further ones wait in the kernel.
    private static let most = 1024

    init(
        _ targets: [AllowedTunnels.Target], on loop: EventLoop,
        failed: @escaping (Authority, String) -> Void
    ) throws {
        self.loop = loop
        self.failed = failed
        dialer = Dialer(options: PoolOptions(), loop: loop)
        for target in targets {
            acceptors.append(
                try Acceptor(
                    try target.socket.listeningSocket(), on: loop,
                    accepted: { [unowned self] in accept($0, for: target.address) }, failed: { _ in }))
        }
    }

    func stop() { for acceptor in acceptors { acceptor.close() } }

    private func accept(_ program: StreamSocket, for address: Authority) {
        let connection = AllowedConnection(program, on: loop)
        let key = ObjectIdentifier(connection)
        connections[key] = connection
        if connections.count >= Self.most { for acceptor in acceptors { acceptor.pause() } }
        // Connections go on when the listeners have stopped, and keep this object for that.
        connection.open(to: address, by: dialer) { [self] reason in
            if let reason { failed(address, reason) }
            connections[key] = nil
            if connections.count < Self.most { for acceptor in acceptors { acceptor.resume() } }
        }
    }
}

/// A connection of the program, and the one to the address outside.
private final class AllowedConnection: ReadinessHandler {
    private let program: StreamSocket
    private let loop: EventLoop
    private var attempt: DialAttempt?
    private var tunnel: Tunnel?
    private var localAddress: SocketAddress?
    private var ended: ((String?) -> Void)?

    init(_ program: StreamSocket, on loop: EventLoop) {
        self.program = program
        self.loop = loop
    }

    func open(to address: Authority, by dialer: Dialer, _ ended: @escaping (String?) -> Void) {
        self.ended = ended
        do throws(TransportError) {
            let attempt = try dialer.dial(host: address.host.description, port: address.port ?? 0) { [weak self] in
                self?.dialled($0)
            }
            if self.ended != nil, tunnel == nil { self.attempt = attempt }
        } catch { end("\(error)") }
    }

    private func dialled(_ result: Result<StreamSocket, TransportError>) {
        attempt = nil
        switch result {
        case .success(let target): join(target)
        case .failure(let error): end("\(error)")
        }
    }

    private func join(_ target: StreamSocket) {
        localAddress = OwnConnections.add(target)
        let tunnel = Tunnel(
            program: TunnelSide(program), target: TunnelSide(target), loop: loop, progressed: {},
            ended: { [unowned self] isCut in
                if isCut { program.resetOnClose() }
                end(nil)
            })
        self.tunnel = tunnel
        do throws(SystemError) {
            try target.register(tunnel)
            try program.register(self)
        } catch { return end("\(error)") }
        tunnel.pump()
    }

    func ready(_ readiness: Readiness) { tunnel?.programReady(readiness) }

    private func end(_ reason: String?) {
        guard let ended else { return }
        self.ended = nil
        OwnConnections.remove(localAddress)
        // A connection that leads nowhere does not end in order: the program could take that for an answer.
        if reason != nil { program.resetOnClose() }
        program.close()
        ended(reason)
    }
}
