import Reactor
import TLSServer

// TLS of the proxy's own listeners.
extension ProxyShard {
    /// Puts TLS upon a connection, where its listener has some. The server name that the client asks for does not matter.
    /// - Returns: `nil` without a certificate or memory.
    func secure(_ carrier: any ByteStream, listener: Int) -> (any ByteStream)? {
        guard let tls = rules.listeners[listener]?.tls else { return carrier }
        guard let certificate = rules.plan.certificate(tls) else { return nil }
        return try? TLSServerStream(
            on: carrier, server: self.tls, choose: { _ in .serve(certificate) },
            report: { [weak self] in self?.handshakeEnded($0, listener: listener) })
    }

    private func handshakeEnded(_ end: HandshakeEnd, listener: Int) {
        if case .done = end { return }
        guard let others = listenerFailures.count(at: loop.now), let address = rules.listeners[listener]?.address else {
            return
        }
        var failure = FailedHandshake(target: "\(address)", end: end)
        failure.others = others
        observer.handshakeFailed(failure)
    }
}

/// Failed handshakes at listeners: any client can cause them, so the log tells one in ten seconds.
struct ListenerFailures {
    private static let interval = Duration.seconds(10)
    private var told: LoopTime?
    private var untold = 0

    /// - Returns: number of failures since the last one that was told; `nil`: this one is not told.
    mutating func count(at now: LoopTime) -> Int? {
        if let told, now.since(told) < Self.interval {
            untold += 1
            return nil
        }
        defer { (told, untold) = (now, 0) }
        return untold
    }
}
