import CLibssl
import Reactor

// The end of a connection, and facts about the TCP stream below it.
extension TLSServerStream {
    public func shutdownWriting() {
        guard writing == .open else { return }
        writing = .ending
        guard case .open = phase else { return }
        sendCloseNotify()
        flush()
    }

    /// Sends close_notify, but not after a failure or a cut. SSL_shutdown(3)
    func sendCloseNotify() {
        if wire.endsAsCut { return }
        if case .failed = readEnd { return }
        ERR_clear_error()
        _ = unsafe SSL_shutdown(tls)
        ERR_clear_error()
    }

    public func resetOnClose() {
        writing = .ended
        wire.isCut = true
        wire.carrier.resetOnClose()
    }

    public func endAsCut() { wire.endsAsCut = true }

    public func close() {
        if wire.isEnding { reportClientEnd() }
        report = nil
        switch phase {
        case .leaving, .closed: return
        case .open where !wire.isCut:
            if writing == .open { sendCloseNotify() }
            wire.flush()
            guard wire.unsent > 0 else { return finish() }
            phase = .leaving
            handler = nil
            server.await(self)
        case .handshaking, .open, .failed: finish()
        }
    }

    func finish() {
        phase = .closed
        handler = nil
        server.forget(self)
        wire.carrier.close()
    }

    /// Ends a connection whose deadline has passed, or that exceeds the limit.
    func giveUp() {
        switch phase {
        case .handshaking: fail(.abandoned, SystemError("SSL_accept", code: ETIMEDOUT))
        case .leaving:
            wire.carrier.resetOnClose()
            finish()
        case .open, .failed, .closed: break
        }
    }

    /// Reports a client that left after the handshake, before its first byte. After this byte, `report` is `nil`.
    func reportClientEnd() {
        guard case .open = phase, let report else { return }
        self.report = nil
        report(received.map { .alert($0) } ?? .silent)
    }

    // MARK: Facts of the carrier

    public var unacknowledged: Int { wire.carrier.unacknowledged + wire.unsent }

    public var peerCredentials: PeerCredentials? { wire.carrier.peerCredentials }

    public var peerAddress: SocketAddress? { wire.carrier.peerAddress }

    public var localAddress: SocketAddress? { wire.carrier.localAddress }

    public var isSecure: Bool { true }
}
