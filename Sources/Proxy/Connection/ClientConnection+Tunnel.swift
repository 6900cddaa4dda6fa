import CurlTransport
import HTTPMessage
import Reactor

// CONNECT (RFC 9110, section 9.3.6): never with a token, and no answer before the connection stands. A refused one ends
// the client's connection: what stands behind its head may be meant for the other end (RFC 9931, section 3).
extension ClientConnection {
    func beginTunnel() {
        exchange.clientKeepsAlive = false
        do throws(Problem) {
            try dial()
        } catch {
            fail(error)
        }
    }

    private func dial() throws(Problem) {
        let authority = try headBytes.withBytes { bytes throws(Problem) in try Self.authority(of: head, bytes) }
        guard case .forward = role, let tunnels = shard.tunnels else { throw .connectRefused }
        guard let port = authority.port, let dialer = tunnels.dialer(for: authority) else { throw .tunnelNotListed }
        phase = .dialling
        clearDeadline()
        do throws(TransportError) {
            let attempt = try dialer.dial(host: authority.host.description, port: port) { [weak self] result in
                self?.dialled(result)
            }
            if phase == .dialling { dialAttempt = attempt }
        } catch {
            dialled(.failure(error))
        }
    }

    private static func authority(of head: RequestHead, _ bytes: Span<UInt8>) throws(Problem) -> Authority {
        do throws(MessageError) {
            _ = try RequestTarget(parsing: bytes, head: head)
            return try Authority(parsing: bytes, head.target)
        } catch {
            throw Problem(error)
        }
    }

    private func dialled(_ result: Result<StreamSocket, TransportError>) {
        dialAttempt = nil
        guard phase == .dialling else { return }
        do throws(TransportError) {
            try openTunnel(to: result.get())
        } catch {
            phase = .exchanging
            report(error)
            fail(error.kind == .connectionTimedOut ? .tunnelTimeout : Problem(error))
        }
    }

    private func openTunnel(to socket: StreamSocket) throws(TransportError) {
        let client = TunnelSide(self.socket, isEnding: isPeerClosed, hasEnded: hasEnded)
        let tunnel = Tunnel(
            client: client, upstream: TunnelSide(socket), loop: shard.loop,
            progressed: { [unowned self] in tunnelProgressed() }, ended: { [unowned self] in tunnelEnded() })
        do throws(SystemError) {
            try socket.register(tunnel)
        } catch {
            throw TransportError(.internal, message: error.description)
        }
        self.tunnel = tunnel
        phase = .tunnelling
        status = 200
        output.append("HTTP/1.1 200 Connection established\r\n\r\n")
        tunnel.toClient.begin(with: output.bytes, counts: false)
        output.release()
        tunnel.toUpstream.begin(with: input.bytes, counts: true)
        input.release()
        setDeadline(.tunnelIdle, after: shard.idleTimeout)
        tunnel.pump()
    }

    private func tunnelProgressed() {
        guard let tunnel else { return }
        setDeadline(.tunnelIdle, after: shard.idleTimeout)
        shard.bytesPassed(self, sent: tunnel.toUpstream.takeNews(), received: tunnel.toClient.takeNews())
    }

    private func tunnelEnded() {
        guard let tunnel else { return }
        shard.bytesPassed(self, sent: tunnel.toUpstream.takeNews(), received: tunnel.toClient.takeNews())
        shard.requestEnded(self)
        self.tunnel = nil
        close()
    }
}
