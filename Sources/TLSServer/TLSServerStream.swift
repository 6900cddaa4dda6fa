import CLibssl
import Cryptography
import Reactor

/// The server's side of TLS on any byte stream. Reads and writes return `wouldBlock` until the handshake is done. An
/// end of the client without close_notify is a failure, never an orderly end. Loop's thread only.
@safe public final class TLSServerStream: ByteStream, ReadinessHandler, NextTurnHandler {
    enum Phase {
        case handshaking
        case open
        case failed(SystemError)
        /// Closed by the owner, but the carrier has not taken all bytes yet.
        case leaving
        case closed
    }

    enum Writing {
        case open
        /// The owner has ended writing. close_notify waits for the end of the handshake, or for room in the carrier.
        case ending
        case ended
    }

    /// Choice of the context by the ClientHello.
    enum Hello {
        case awaited((String?) -> ContextChoice)
        /// The ClientHello has arrived; its context is not decided yet.
        case waiting
        /// `nil`: no context is available.
        case decided(TLSServerContext?)
    }

    /// Limit of consecutive key updates, between which a client sends no application data.
    private static let maxSilence = 32
    /// Limit of records read in one call, because a record may hold a single byte.
    private static let maxRecords = 64

    let wire: TLSWire
    let server: TLSServerLoop
    /// SSL, freed in `deinit`.
    let tls: OpaquePointer
    var handler: (any ReadinessHandler)?
    var phase = Phase.handshaking
    var writing = Writing.open
    /// Result of all further reads, once the client's side has ended.
    private(set) var readEnd: Transferred?
    /// Receives the result of the handshake; `nil` after the last call.
    var report: ((HandshakeEnd) -> Void)?
    var hello: Hello
    var serverName: String?
    var received: TLSAlert?
    var sent: TLSAlert?
    private var silence = 0
    private var isNoticed = false

    /// - Parameters:
    ///   - carrier: stream of the encrypted bytes. This stream takes ownership.
    ///   - received: bytes already read from the carrier.
    ///   - isEnding: whether the carrier has already announced the client's end.
    ///   - server: the limits of the carrier's loop.
    ///   - choose: chooses the context by the client's server name, in lower case. Called once, within the handshake.
    ///     It must not use this stream.
    ///   - report: receives the result of the handshake, unless the owner closes the stream before.
    /// - Throws: `CryptographyError.libcrypto` when memory is lacking.
    public init(
        on carrier: any ByteStream, received: consuming ByteBuffer = ByteBuffer(), isEnding: Bool = false,
        server: TLSServerLoop, choose: @escaping (String?) -> ContextChoice,
        report: @escaping (HandshakeEnd) -> Void = { _ in }
    ) throws(CryptographyError) {
        wire = TLSWire(carrier, received: received, isEnding: isEnding, spares: server.spares)
        self.server = server
        hello = .awaited(choose)
        self.report = report
        unsafe tls = try server.front.newConnection(on: wire, at: server.loop.now)
        unsafe TLSFront.set(owner: self, of: tls)
    }

    deinit { unsafe SSL_free(tls) }

    public func register(_ handler: any ReadinessHandler) throws(SystemError) {
        try wire.carrier.register(self)
        self.handler = handler
        server.await(self)
        // epoll may report no edge for bytes that were received before.
        notice()
    }

    // MARK: Readiness

    public func ready(_ readiness: Readiness) {
        let unsent = wire.unsent
        wire.note(readiness)
        switch phase {
        case .handshaking: advance()
        case .open:
            flush()
            handler?.ready(wire.unsent == 0 ? readiness : readiness.subtracting(.writable))
        case .leaving:
            wire.flush()
            if wire.unsent == 0 { finish() } else if wire.unsent < unsent { server.await(self) }
        case .failed, .closed: break
        }
    }

    /// Calls the handler in the next turn, for readiness that no edge of the carrier reports.
    func notice() {
        guard !isNoticed else { return }
        isNoticed = true
        server.loop.atNextTurn(self)
    }

    public func nextTurn() {
        isNoticed = false
        switch phase {
        case .handshaking: advance()
        case .open: handler?.ready(readEnd == nil ? .readable : [.readable, .peerClosed])
        case .failed: handler?.ready([.readable, .error])
        case .leaving, .closed: break
        }
    }

    // MARK: Reading

    public func read(into buffer: inout ByteBuffer, limit: Int) -> Transferred {
        switch phase {
        case .handshaking: return .wouldBlock
        case .open: break
        case .failed(let error): return .failed(error)
        case .leaving, .closed: return .failed(SystemError("SSL_read", code: EBADF))
        }
        if let readEnd { return readEnd }
        var (count, records) = (0, 0)
        var step = Transferred.wouldBlock
        while count < limit, records < Self.maxRecords {
            step = decrypt(into: &buffer, limit: limit - count)
            guard case .bytes(let more) = step else { break }
            count += more
            records += 1
        }
        flush()
        if count > 0 { report = nil }
        switch step {
        case .wouldBlock: break
        case .bytes: if count < limit { notice() }
        case .endOfStream, .failed:
            readEnd = step
            reportClientEnd()
            // After a short read, the reader waits for an edge. `notice` replaces this edge.
            if count > 0 { notice() }
        }
        return count > 0 ? .bytes(count) : step
    }

    /// Reads bytes of one record. SSL_read_ex(3), SSL_get_error(3).
    private func decrypt(into buffer: inout ByteBuffer, limit: Int) -> Transferred {
        ERR_clear_error()
        var count = 0
        var code: Int32 = 0
        _ = unsafe buffer.withSpareCapacity(limit) { spare in
            code = unsafe SSL_read_ex(tls, spare.baseAddress, min(limit, spare.count), &count)
            return count
        }
        if code == 1 {
            silence = 0
            return .bytes(count)
        }
        switch unsafe SSL_get_error(tls, code) {
        case SSL_ERROR_WANT_READ: return .wouldBlock
        case SSL_ERROR_ZERO_RETURN: return .endOfStream
        default: return .failed(fault("SSL_read"))
        }
    }

    /// Counts a message of the handshake protocol that arrives after the handshake.
    func countKeyUpdate() {
        guard case .open = phase else { return }
        silence += 1
        if silence > Self.maxSilence { wire.isStopped = true }
    }

    /// Clears libssl's errors, and returns the cause of libssl's failure: the carrier's error or end, or the protocol.
    func fault(_ call: String) -> SystemError {
        ERR_clear_error()
        switch wire.end {
        case .failed(let error): return error
        case .endOfStream where received == nil: return SystemError(call, code: ECONNRESET)
        default: return SystemError(call, code: EPROTO)
        }
    }

    // MARK: Writing

    public func write(from buffer: inout ByteBuffer) -> Transferred {
        let nothing: InlineArray<0, UInt8> = []
        return write(from: &buffer, then: nothing.span)
    }

    public func write(from buffer: inout ByteBuffer, then body: Span<UInt8>) -> Transferred {
        switch phase {
        case .handshaking: return .wouldBlock
        case .open where writing == .open: break
        case .open: return .failed(SystemError("SSL_write", code: EPIPE))
        case .failed(let error): return .failed(error)
        case .leaving, .closed: return .failed(SystemError("SSL_write", code: EBADF))
        }
        flush()
        let first = buffer.count
        let total = first + body.count
        var done = 0
        while done < total, wire.unsent == 0 {
            repeat {
                let count =
                    done < first ? encrypt(buffer.bytes) : encrypt(body.extracting((done - first)...))
                guard count > 0 else { return .failed(fault("SSL_write")) }
                if done < first { buffer.consume(count) }
                done += count
            } while done < total && wire.hasRoom
            flush()
        }
        if case .failed(let error) = wire.end { return .failed(error) }
        return done == 0 && total > 0 ? .wouldBlock : .bytes(done)
    }

    /// Encrypts one record. SSL_write_ex(3)
    /// - Returns: number of plain bytes in the record; 0 for a failure.
    private func encrypt(_ bytes: Span<UInt8>) -> Int {
        ERR_clear_error()
        var count = 0
        let piece = bytes.extracting(first: Int(SSL3_RT_MAX_PLAIN_LENGTH))
        let code = unsafe piece.withUnsafeBytes { unsafe SSL_write_ex(tls, $0.baseAddress, $0.count, &count) }
        return code == 1 ? count : 0
    }

    /// Sends the waiting bytes. Once the carrier has taken close_notify, ends our side of the carrier.
    func flush() {
        wire.flush()
        guard writing == .ending, case .open = phase, wire.unsent == 0 else { return }
        writing = .ended
        wire.carrier.shutdownWriting()
    }
}
