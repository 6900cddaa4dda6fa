import Reactor
import TLSServer

// TLS of the proxy's own listeners.
extension ProxyShard {
    /// Adds TLS to a connection if its listener has TLS. The server name in the ClientHello does not matter.
    /// - Returns: `nil` if no certificate is available or memory is lacking.
    func secure(_ carrier: any ByteStream, listener: Int) -> (any ByteStream)? {
        guard let tls = self.listener(listener, under: installed)?.tls else { return carrier }
        guard let certificate = installed.plan.shared.certificate(tls) else { return nil }
        return try? TLSServerStream(
            on: carrier, server: self.tls, choose: { _ in .serve(certificate) },
            report: { [weak self] in self?.handshakeEnded($0, listener: listener) })
    }

    private func handshakeEnded(_ end: HandshakeEnd, listener: Int) {
        if case .done = end { return }
        guard let others = listenerTLS.failures.count(at: loop.now),
            let address = installed.listeners[listener]?.address
        else {
            return
        }
        var failure = FailedHandshake(target: "\(address)", end: end)
        failure.others = others
        observer.handshakeFailed(failure)
    }
}

final class ListenerTLSState {
    /// Failed handshakes at listeners.
    var failures = LineLimit()
    let certificateEnds: CertificateEnds

    init(loop: EventLoop) { certificateEnds = CertificateEnds(loop: loop) }
}
