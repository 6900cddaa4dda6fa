import CLibssl
import Cryptography
import Reactor

/// The server's side of TLS on any stream of bytes. A reader or writer finds `wouldBlock` until the handshake is done. The
/// client's end without close_notify is a failure, never an orderly end. Loop's thread only.
@safe public final class TLSServerStream: ByteStream, ReadinessHandler, NextTurnHandler {
    enum Phase {
        case handshaking
        case open
        case failed(SystemError)
        /// Closed by the owner; the carrier takes the last bytes.
        case leaving
        case closed
    }

    enum Writing {
        case open
        /// The owner has ended it; close_notify is on its way, or waits for the handshake.
        case ending
        case ended
    }

    /// State of the ClientHello's answer.
    enum Hello {
        case awaited((String?) -> ContextChoice)
        /// The ClientHello has come; its context is not decided yet.
        case waiting
        /// `nil`: no context is available.
        case decided(TLSServerContext?)
    }

    /// Key updates, one after the other without application data, that a client may send.
    private static let maxSilence = 32
    /// Records read at most in one call, since a record may hold a single byte.
    private static let maxRecords = 64

    let wire: TLSWire
    let server: TLSServerLoop
    /// SSL, freed in `deinit`.
    let tls: OpaquePointer
    var handler: (any ReadinessHandler)?
    var phase = Phase.handshaking
    var writing = Writing.open
    /// The last answer of all reads to come.
    private(set) var readEnd: Transferred?
    /// `nil` after the last call.
    var report: ((HandshakeEnd) -> Void)?
    var hello: Hello
    var serverName: String?
    var received: TLSAlert?
    var sent: TLSAlert?
    private var silence = 0
    private var isNoticed = false

    /// - Parameters:
    ///   - carrier: carries the encrypted bytes. Belongs to this stream from now on.
    ///   - received: bytes that were read from the carrier already.
    ///   - isEnding: whether the carrier has announced the client's end already.
    ///   - server: of the carrier's loop.
    ///   - choose: answers the client's server name, in lower case. Called once, within the handshake, and must not use
    ///     this stream.
    ///   - report: hears how the handshake ended, unless the owner closes the stream before.
    /// - Throws: `CryptographyError.libcrypto` without memory.
    public init(
        on carrier: any ByteStream, received: consuming ByteBuffer = ByteBuffer(), isEnding: Bool = false,
        server: TLSServerLoop, choose: @escaping (String?) -> ContextChoice,
        report: @escaping (HandshakeEnd) -> Void = { _ in }
    ) throws(CryptographyError) {
        wire = TLSWire(carrier, received: received, isEnding: isEnding, spares: server.spares)
        self.server = server
        hello = .awaited(choose)
        self.report = report
        unsafe tls = try TLSFront.newConnection(on: wire)
        unsafe TLSFront.set(owner: self, of: tls)
    }

    deinit { unsafe SSL_free(tls) }

    public func register(_ handler: any ReadinessHandler) throws(SystemError) {
        try wire.carrier.register(self)
        self.handler = handler
        server.await(self)
        // No edge may come for bytes that were received before.
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

    /// Reports readiness in the next turn that no edge of the carrier reports.
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
            leftBehind()
            // The reader takes a short read for the last one before the next edge.
            if count > 0 { notice() }
        }
        return count > 0 ? .bytes(count) : step
    }

    /// Reads from one record. SSL_read_ex(3), SSL_get_error(3).
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

    /// A message of the handshake protocol that came after the handshake.
    func heardKeyUpdate() {
        guard case .open = phase else { return }
        silence += 1
        if silence > Self.maxSilence { wire.isStopped = true }
    }

    /// Clears libssl's errors and names the reason for a failure of libssl: the carrier's, if that is the cause.
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

    /// Makes one record. SSL_write_ex(3)
    /// - Returns: number of bytes in it; 0 for a failure.
    private func encrypt(_ bytes: Span<UInt8>) -> Int {
        ERR_clear_error()
        var count = 0
        let piece = bytes.extracting(first: Int(SSL3_RT_MAX_PLAIN_LENGTH))
        let code = unsafe piece.withUnsafeBytes { unsafe SSL_write_ex(tls, $0.baseAddress, $0.count, &count) }
        return code == 1 ? count : 0
    }

    /// Sends the waiting bytes. Ends the carrier's side behind close_notify.
    func flush() {
        wire.flush()
        guard writing == .ending, case .open = phase, wire.unsent == 0 else { return }
        writing = .ended
        wire.carrier.shutdownWriting()
    }
}
