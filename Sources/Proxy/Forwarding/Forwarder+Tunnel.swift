import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor
import TLSServer
import WireText

// CONNECT (RFC 9110, section 9.3.6). After a refusal the program's connection closes, because the program may have sent
// bytes for the target already (RFC 9931, section 3).
extension Forwarder {
    // MARK: CONNECT to a listed host

    func answerConnect() {
        context.ledger.status = 200
        guard context.sender.redirected == nil else { return lookInside() }
        context.ledger.bytesSent = UInt64(
            stream.answer(AnswerHead(200), reason: Self.established.span, fields: { _ in }))
        lookInside()
    }

    func lookInside() {
        switch stream.peek(until: { _ in true }) {
        case .byte(let byte): perform(context.exchange.firstByteCame(byte))
        case .wait: break
        case .end: perform(.leave(closes: true))
        case .gone: perform(.leave(closes: false))
        }
    }

    /// Ends the CONNECT. The connection's next requests come inside it; for `.https` the proxy opens their TLS.
    func serveInside(_ authority: Authority, _ scheme: Scheme) {
        context.sender.inside = stream.request.with { head, bytes in
            Inside(
                authority: authority, scheme: scheme, credentials: BasicCredentials(head, bytes),
                program: scheme == .https ? program(head, bytes) : Program(),
                isRedirected: context.sender.redirected != nil)
        }
        settle(stream.progress)
        context.sender.redirected = nil
        guard scheme == .http || addTLS() else { return stream.close(cut: true) }
        stream.finish(trailers: [], keepsOpen: true)
    }

    /// Adds TLS to the program's connection. Returns `false` if memory is lacking or the program is gone.
    private func addTLS() -> Bool {
        stream.wrapStream { carrier, received in
            try? TLSServerStream(
                on: carrier, received: received, server: shard.tls,
                choose: { [weak self] in self?.certificate(for: $0) ?? .refuse },
                report: { [weak self] in self?.handshakeEnded($0) })
        }
    }

    /// Chooses the certificate for a ClientHello, and puts the name of the host into `inside`.
    /// - Parameter name: server name in the ClientHello (RFC 6066, section 3).
    /// - Returns: `refuse` for a host that is not intercepted, and for another host than the CONNECT's. If the CONNECT
    ///   names an address, the program may name any intercepted host.
    private func certificate(for name: String?) -> ContextChoice {
        guard let inside = context.sender.inside, let interception = shard.installed.plan.interception else {
            return .refuse
        }
        var host = inside.authority.host
        if let name {
            guard host.isAddress || host == .name(name) else { return .refuse }
            host = .name(name)
        }
        let authority = Authority(host: host, port: inside.authority.port)
        guard let routes = shard.installed.intercepted(authority) else { return .refuse }
        context.sender.inside = inside.to(authority, routes.serverCertificate)
        if let own = routes.serverCertificate { return ContextChoice(shard.installed.plan.shared.certificate(own)) }
        return interception.choice(for: host, listener: stream.source.listener)
    }

    private func handshakeEnded(_ end: HandshakeEnd) {
        if case .done = end { return }
        var failure = FailedHandshake(target: context.sender.inside.map { "\($0.authority)" } ?? "", end: end)
        failure.caller = context.sender.inside?.program.caller ?? ""
        failure.program = context.sender.inside?.program.name
        shard.observer.handshakeFailed(failure)
    }

    private func program(_ head: RequestHead, _ bytes: Span<UInt8>) -> Program {
        var program = Program(caller: context.admitted.caller.name ?? stream.source.address?.host ?? "")
        if let index = head.index(of: .userAgent),
            context.installed.gate.placeholders?.isIn(bytes[head.fields[index].value]) != true
        {
            program.name = ForeignText.printable(bytes[head.fields[index].value].text, most: 64)
        }
        return program
    }

    /// Closes the connection, because no HTTP answer is possible. A program that has begun TLS gets an alert first.
    func endConnect(_ problem: Problem) {
        let status = context.ledger.status
        context.ledger.note(problem)
        context.ledger.cause = problem.detail
        let isRedirected = context.sender.redirected != nil
        if context.exchange.isAnswered, !isRedirected { context.ledger.status = status }
        let target = context.sender.inside.map { Array("\($0.authority)".utf8) }
        shard.observer.connectEnded(
            target ?? stream.request.with { Array($1[$0.target].text.utf8) }, problem.detail)
        if isRedirected || problem.condition == .connectRefused, stream.write(Self.accessDenied.span, .all) == nil {
            return leave()
        }
        settle(stream.progress)
        stream.finish(trailers: [], keepsOpen: false)
    }

    private static let established = Array("Connection established".utf8)
    /// The fatal alert `access_denied` (RFC 8446, section 6).
    private static let accessDenied: [UInt8] = [0x15, 3, 3, 0, 2, 2, 49]

    // MARK: Tunnels

    /// Dials the target, then answers a CONNECT with 200 if it has no answer yet. Requests in a tunnel get no token.
    func openTunnel(to authority: Authority) {
        context.exchange.tunnel(isRedirected: context.sender.redirected != nil)
        context.ledger.times.ask(shard.loop.now)
        // The address of a name that an enclosed program has looked up is none out here. The name is dialled.
        let redirected = context.sender.dialled == nil ? context.sender.redirected : nil
        guard let target = context.installed.tunnels?.target(for: authority, redirected) else {
            return perform(context.exchange.failed(Problem(.connectRefused)))
        }
        waitNumber += 1
        let number = waitNumber
        do throws(TransportError) {
            let attempt = try target.dialer.dial(host: target.host, port: target.port) { [weak self] result in
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
            perform(context.exchange.failed(Problem(tunnel: error)))
        }
    }

    private func join(_ target: StreamSocket) throws(TransportError) {
        let localAddress = OwnConnections.add(target)
        do throws(SystemError) {
            try stream.handOver { program, received, unsent throws(SystemError) in
                let tunnel = Tunnel(
                    program: TunnelSide(program.stream, isEnding: program.isEnding, hasEnded: program.hasEnded),
                    target: TunnelSide(target), loop: shard.loop,
                    progressed: { [unowned self] in tunnelProgressed() },
                    ended: { [unowned self] isCut in
                        OwnConnections.remove(localAddress)
                        tunnelEnded(isCut)
                    })
                try target.register(tunnel)
                var head = ByteBuffer()
                head.append(unsent)
                if !context.exchange.isAnswered, context.sender.redirected == nil {
                    head.append("HTTP/1.1 200 Connection established\r\n\r\n")
                }
                tunnel.toProgram.begin(with: head.bytes, counts: false)
                tunnel.toTarget.begin(with: received, counts: true)
                context.tunnel = tunnel
            }
        } catch {
            OwnConnections.remove(localAddress)
            throw TransportError(.internal, message: error.description)
        }
        context.ledger.times.connect(shard.loop.now, isReused: false)
        context.ledger.status = 200
        context.exchange.pieceCame()
        keepTime()
        context.tunnel?.pump()
    }

    func ready(_ readiness: Readiness) { context.tunnel?.programReady(readiness) }

    private func tunnelProgressed() {
        guard let tunnel = context.tunnel else { return }
        context.exchange.pieceCame()
        keepTime()
        RecordPhase.bytesPassed(
            context, sent: tunnel.toTarget.newBytes(), received: tunnel.toProgram.newBytes())
    }

    private func tunnelEnded(_ isCut: Bool) {
        guard let tunnel = context.tunnel else { return }
        RecordPhase.bytesPassed(
            context, sent: tunnel.toTarget.newBytes(), received: tunnel.toProgram.newBytes())
        settle(stream.progress)
        stream.close(cut: isCut)
    }
}
