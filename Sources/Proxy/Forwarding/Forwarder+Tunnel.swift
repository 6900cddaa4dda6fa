import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor

// CONNECT (RFC 9110, section 9.3.6): never with a token, and answered after the connection is ready. A refusal closes
// the client's connection: the next bytes may be meant for the target (RFC 9931, section 3).
extension Forwarder {
    func openTunnel(to authority: Authority) {
        context.exchange.tunnel()
        context.ledger.times.ask(shard.loop.now)
        guard let dialer = context.rules.tunnels?.dialer(for: authority), let port = authority.port else {
            return perform(.fail(.connectRefused))
        }
        waitNumber += 1
        let number = waitNumber
        do throws(TransportError) {
            let attempt = try dialer.dial(
                host: authority.host.description, port: port
            ) { [weak self] result in
                guard let self, number == waitNumber else { return }
                dialled(result)
            }
            if number == waitNumber { dialAttempt = attempt }
        } catch {
            dialled(.failure(error))
        }
    }

    private func dialled(_ result: Result<StreamSocket, TransportError>) {
        waitNumber += 1
        dialAttempt = nil
        do throws(TransportError) {
            try join(result.get())
        } catch {
            RecordPhase.report(error, &context)
            perform(.fail(Problem(tunnel: error)))
        }
    }

    private func join(_ upstream: StreamSocket) throws(TransportError) {
        do throws(SystemError) {
            try stream.handOver { client, received, unsent throws(SystemError) in
                let tunnel = Tunnel(
                    client: TunnelSide(client.stream, isEnding: client.isEnding, hasEnded: client.hasEnded),
                    upstream: TunnelSide(upstream), loop: shard.loop,
                    progressed: { [unowned self] in tunnelProgressed() },
                    ended: { [unowned self] in tunnelEnded() })
                try upstream.register(tunnel)
                var head = ByteBuffer()
                head.append(unsent)
                head.append("HTTP/1.1 200 Connection established\r\n\r\n")
                tunnel.toClient.begin(with: head.bytes, counts: false)
                tunnel.toUpstream.begin(with: received, counts: true)
                context.tunnel = tunnel
            }
        } catch {
            throw TransportError(.internal, message: error.description)
        }
        context.ledger.times.connect(shard.loop.now, isReused: false)
        context.ledger.status = 200
        context.exchange.pieceCame()
        keepTime()
        context.tunnel?.pump()
    }

    func ready(_ readiness: Readiness) { context.tunnel?.clientReady(readiness) }

    private func tunnelProgressed() {
        guard let tunnel = context.tunnel else { return }
        context.exchange.pieceCame()
        keepTime()
        RecordPhase.bytesPassed(context, sent: tunnel.toUpstream.takeNews(), received: tunnel.toClient.takeNews())
    }

    private func tunnelEnded() {
        guard let tunnel = context.tunnel else { return }
        RecordPhase.bytesPassed(context, sent: tunnel.toUpstream.takeNews(), received: tunnel.toClient.takeNews())
        settle(stream.progress)
        stream.close(cut: false)
    }
}
