import CLibssl
import Reactor

// The handshake, driven by the carrier's readiness.
extension TLSServerStream {
    /// Continues the handshake until it ends, or waits for the client or the context. SSL_accept(3), SSL_get_error(3).
    func advance() {
        ERR_clear_error()
        let code = unsafe SSL_accept(tls)
        let error = code == 1 ? SSL_ERROR_NONE : unsafe SSL_get_error(tls, code)
        wire.flush()
        switch error {
        case SSL_ERROR_NONE: opened()
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_CLIENT_HELLO_CB: break
        case SSL_ERROR_ZERO_RETURN: fail(.ended, fault("SSL_accept"))
        default: fail(failedEnd, fault("SSL_accept"))
        }
    }

    private func opened() {
        phase = .open
        server.forget(self)
        report?(
            .done(
                version: unsafe String(cString: SSL_get_version(tls)), applicationProtocol: applicationProtocol,
                serverName: serverName))
        // The report may have closed the stream.
        guard case .open = phase else { return }
        if writing == .ending {
            sendCloseNotify()
            flush()
        }
        handler?.ready(wire.isEnding ? [.readable, .writable, .peerClosed] : [.readable, .writable])
    }

    /// The client's certificate; `nil` before the end of the handshake, and if the client sent none.
    public var clientCertificate: ClientCertificate? {
        guard case .open = phase else { return nil }
        return unsafe ClientCertificate(of: tls)
    }

    /// Verification that accepted the client; `nil` if none was asked for.
    public var clientVerification: ClientVerification? {
        if case .decided(let context) = hello { context?.clients } else { nil }
    }

    /// SSL_get0_alpn_selected(3)
    private var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(tls, &name, &count)
        guard let name = unsafe name else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    private var failedEnd: HandshakeEnd {
        if let received { return .alert(received) }
        return switch wire.end {
        case .endOfStream: .ended
        case .failed: .reset
        default: .refused(sent)
        }
    }

    /// Ends the handshake with a failure. The handler is called in the next turn.
    func fail(_ end: HandshakeEnd, _ error: SystemError) {
        phase = .failed(error)
        server.forget(self)
        notice()
        let report = report
        self.report = nil
        report?(end)
    }

    /// Continues a handshake that waits for its context.
    func decide(_ context: TLSServerContext?) {
        guard case .handshaking = phase, case .waiting = hello else { return }
        hello = .decided(context)
        advance()
    }

    // MARK: Called by libssl

    enum HelloAnswer {
        case goOn
        case alert(Int32)
        /// libssl asks again when `advance` is called.
        case wait
    }

    /// Chooses the context by the ClientHello.
    func chooseContext() -> HelloAnswer {
        if case .awaited(let choose) = hello {
            guard readServerName() else { return .alert(SSL_AD_DECODE_ERROR) }
            switch choose(serverName) {
            case .serve(let context): hello = .decided(context)
            case .refuse: return .alert(SSL_AD_UNRECOGNIZED_NAME)
            case .later(let begin):
                hello = .waiting
                begin(LateDecision(self))
            }
        }
        guard case .decided(let context) = hello else { return .wait }
        return unsafe context?.serve(tls) == true ? .goOn : .alert(SSL_AD_INTERNAL_ERROR)
    }

    /// Sets `serverName`. SSL_client_hello_get0_ext(3)
    /// - Returns: `false` for a malformed name.
    private func readServerName() -> Bool {
        var bytes: UnsafePointer<UInt8>?
        var count = 0
        if unsafe SSL_client_hello_get0_ext(tls, UInt32(TLSEXT_TYPE_server_name), &bytes, &count) == 1 {
            serverName = ServerName.parse(MessageReader(unsafe Array(UnsafeBufferPointer(start: bytes, count: count))))
            return serverName != nil
        }
        return true
    }

    /// Notes alerts and handshake messages, sent or received. SSL_set_msg_callback(3)
    func heard(_ type: Int32, isSent: Bool, _ bytes: UnsafeRawBufferPointer) {
        switch type {
        case SSL3_RT_ALERT where bytes.count == 2:
            let alert = TLSAlert(number: unsafe bytes[1])
            guard alert != .closeNotify else { return }
            if isSent { sent = alert } else { received = alert }
            // Within one read, libssl would answer any number of attempts to renegotiate.
            if isSent, alert == .noRenegotiation { wire.isStopped = true }
        case SSL3_RT_HANDSHAKE where !isSent: countKeyUpdate()
        default: break
        }
    }
}
