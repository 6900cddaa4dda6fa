import CLibcurl
import Glibc
import Reactor
import WireText

/// One connection that libcurl dials, secures and carries, and whose user speaks HTTP on it (CURLOPT_CONNECT_ONLY(3)).
/// It comes from a `CarrierPool`, and is closed or given back with `release`. Loop's thread only.
///
/// Readiness is edge-triggered: a user that leaves bytes unread, or stops writing before `wouldBlock`, gets no further
/// `carrierReady`.
@safe public final class Carrier: EasyHandle {
    public unowned let pool: CarrierPool
    var membership: Membership
    /// Request that the connection is dialled for.
    var request: CarrierRequest?
    /// Which TLS handshakes offer HTTP/2. It must outlive the dial.
    var offer: UnsafeMutablePointer<heimdallr_http2_offer>?
    var wire = Wire()
    var phase = Phase.dialling
    private(set) var owner: (any CarrierOwner)?
    private(set) var socket: CurlSocket?
    /// Number of the client certificate in its handshake: `TLSMaterial.pair`.
    public var pair: UInt64 { content?.pair ?? 0 }

    /// Whether TLS is used: the wire then carries other bytes than libcurl's user sees.
    public let isSecured: Bool
    /// Whether the connection was reset. After the peer's end no read shows that.
    public var isBroken: Bool { wire.hasFailed }
    /// Unsent bytes of our close_notify.
    var lastWords = ByteBuffer()
    /// Counts TLS records without content, to bound them.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    /// Whether it has served another exchange before.
    public var isReused: Bool { membership.hasServed }
    /// Whether the connection may serve another request: it is not too old, and the TLS material has not changed.
    public var isYoung: Bool { pool.isYoung(self) }

    /// Upper bound for one read. The caller may ask for less.
    static let maxReceive = 256 * 1024

    init(
        pool: CarrierPool, engine: CurlEngine, request: CarrierRequest, hop: NextHop, siblings: OriginCarriers,
        now: LoopTime
    ) throws(TransportError) {
        self.pool = pool
        self.request = request
        unsafe silence = engine.silence
        membership = Membership(
            siblings: siblings, use: request.use, opened: now, generation: pool.options.material?.generation ?? 0)
        isSecured = request.origin.scheme == .https || hop.isSecure
        try super.init(pool.options, to: request.origin, by: hop, on: engine)
        try setCarrier()
    }

    deinit {
        stop()
        unsafe offer?.deallocate()
    }

    /// Whether requests name their target in absolute form, because a proxy reads them.
    public var needsAbsoluteForm: Bool { hop.needsAbsoluteForm }
    /// The value of Proxy-Authorization for such requests; empty: none.
    public var proxyAuthorization: [UInt8] { hop.authorization }

    // MARK: Speaking

    /// Writes from the front of `bytes`, which are not empty.
    public func send(_ bytes: Span<UInt8>) -> CarrierSent {
        guard phase == .inUse else { return .failed(Self.isClosed) }
        guard wire.canWrite else { return .wouldBlock }
        var count = 0
        let code = unsafe bytes.withUnsafeBytes {
            unsafe curl_easy_send(easy.pointer, $0.baseAddress, $0.count, &count)
        }
        if code == CURLE_OK {
            // Without TLS a partial write means a full socket: the next edge reports room.
            if count < bytes.count, !isSecured { wire.canWrite = false }
            return count > 0 ? .bytes(count) : .wouldBlock
        }
        if code == CURLE_AGAIN {
            wire.canWrite = false
            return .wouldBlock
        }
        // Bytes that the peer sent before it left may still be readable.
        wire.canRead = true
        return .failed(broken(code, "curl_easy_send"))
    }

    /// Reads at most `limit` bytes behind what `buffer` holds.
    public func receive(into buffer: inout ByteBuffer, limit: Int) -> CarrierReceived {
        guard phase == .inUse else { return .failed(Self.isClosed) }
        guard wire.canRead else { return .wouldBlock }
        return take(into: &buffer, limit: min(limit, Self.maxReceive))
    }

    private func take(into buffer: inout ByteBuffer, limit: Int) -> CarrierReceived {
        var count = 0
        var code = CURLE_OK
        unsafe silence.pointee.records = 0
        unsafe silence.pointee.ended = 0
        _ = unsafe buffer.withSpareCapacity(limit) { spare in
            code = unsafe curl_easy_recv(easy.pointer, spare.baseAddress, min(limit, spare.count), &count)
            return code == CURLE_OK ? count : 0
        }
        guard code == CURLE_OK, count > 0 else {
            wire.canRead = false
            if code == CURLE_AGAIN { return .wouldBlock }
            guard code == CURLE_OK else { return .failed(broken(code, "curl_easy_recv")) }
            wire.isSpent = true
            return .end(isClean: !isSecured || sawCloseNotify)
        }
        // A short read means an empty kernel buffer: the next byte is a new edge (epoll(7)). TLS returns one record at a
        // time, so this does not hold there.
        if count < limit, !isSecured, !wire.isPeerClosed { wire.canRead = false }
        return .bytes(count)
    }

    /// Forbids another exchange: `release` then closes the connection.
    public func forbidReuse() { wire.isSpent = true }

    /// Closes the connection; the owner gets no further call.
    public func close() { pool.close(self) }

    /// Gives the connection back after a whole answer to a whole request. The pool keeps it, or closes it.
    /// - Parameter unused: whether the connection has not been used.
    public func release(unused: Bool = false) {
        guard phase == .inUse else { return }
        owner = nil
        if !unused { membership.hasServed = true }
        guard !wire.isSpent, !wire.isPeerClosed, isQuiet else { return pool.close(self) }
        pool.keep(self)
    }

    // MARK: For the pool

    /// Takes the connected socket over from libcurl.
    /// - Returns: `nil` if the connection can be used.
    func connect() -> TransportError? {
        guard let socket = descriptor.flatMap({ engine?.sockets[$0] }) else {
            return TransportError(.internal, message: "no descriptor for the connection")
        }
        self.socket = socket
        socket.carrier = self
        phase = .inUse
        request = nil
        if isSecured {
            // TLS may still say why it ends.
            unsafe errorText?.pointee = 0
        } else {
            unsafe errorText?.deallocate()
            unsafe errorText = nil
        }
        do throws(TransportError) {
            // Otherwise the handle would write into freed memory.
            if !isSecured { try unsafe set(CURLOPT_ERRORBUFFER, pointer: nil) }
            // This bounds one read; libcurl allocates no buffer of that size at this point.
            try set(CURLOPT_BUFFERSIZE, Self.maxReceive)
        } catch { return error }
        return membership.use == .socket ? nil : readFirst()
    }

    /// Reads once: libcurl may close a connection that was never used, and shows its TLS only after a read.
    private func readFirst() -> TransportError? {
        var first = ByteBuffer()
        let received = take(into: &first, limit: 4096)
        wire.speaksHTTP2 =
            unsafe membership.use == .knownHTTP2
            || membership.use == .http2 && heimdallr_easy_speaks_http2(easy.pointer) != 0
        switch received {
        case .wouldBlock: return nil
        // RFC 9113, section 3.4.
        case .bytes where wire.speaksHTTP2:
            wire.early = [UInt8](copying: first.bytes)
            return nil
        case .bytes: return TransportError(.responseMalformed, message: "the server spoke before it was asked")
        case .end: return TransportError(.connectionLost, message: "the connection ended before it was used")
        case .failed(let error): return error
        }
    }

    func use(by owner: any CarrierOwner) {
        phase = .inUse
        self.owner = owner
    }

    func ready(_ readiness: Readiness) {
        // TLS may need readiness of either kind, for reading or writing.
        if isSecured || !readiness.isDisjoint(with: [.writable, .failed]) { wire.canWrite = true }
        if isSecured || !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { wire.canRead = true }
        if !readiness.isDisjoint(with: [.peerClosed, .failed]) { wire.isPeerClosed = true }
        if readiness.contains(.error) { wire.hasFailed = true }
        switch phase {
        case .inUse: owner?.carrierReady(self)
        // An idle connection must be silent: bytes would be taken for the next answer.
        case .idle: if wire.isPeerClosed || !isQuiet { pool.close(self) }
        case .dialling, .closed: break
        }
    }

    /// Returns whether a request may be written: neither bytes nor an end has come since the last answer. epoll may
    /// report both too late, so this asks the kernel. The request's head follows at once, or `close`.
    public func isUntouched() -> Bool {
        guard membership.idleSince.nanoseconds > 0 else { return true }
        guard !wire.isPeerClosed, !wire.hasFailed else { return false }
        wire.canRead = true
        return isQuiet && !holdsBytes
    }

    /// Whether there is nothing to read, neither bytes nor an end. Also processes TLS messages without content, such as
    /// session tickets, which may come at any time.
    private var isQuiet: Bool {
        if wire.canRead, isEmpty { wire.canRead = false }
        guard wire.canRead else { return true }
        var unasked = ByteBuffer()
        return take(into: &unasked, limit: 64) == .wouldBlock
    }

    /// Whether neither the kernel nor TLS holds bytes or an end. Much cheaper than a read through TLS. Bytes that TLS to a
    /// next proxy may hold can't be seen.
    var isEmpty: Bool {
        guard let socket, !hop.isSecure, !holdsBytes else { return false }
        var byte: UInt8 = 0
        let count = unsafe recv(socket.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count < 0 && errno == EAGAIN
    }

    /// Whether TLS holds bytes, perhaps a part of a record.
    private var holdsBytes: Bool { isSecured && (unsafe heimdallr_easy_has_part(easy.pointer) != 0) }

    override func ended(_ code: CURLcode) { pool.dialled(self, code == CURLE_OK ? nil : dialError(for: code)) }

    /// Drops all references through which it could be called.
    func end() {
        phase = .closed
        request = nil
        names = nil
        owner = nil
        socket?.carrier = nil
        socket = nil
    }

    private var sawCloseNotify: Bool {
        unsafe silence.pointee.ended == 0 && heimdallr_easy_saw_close_notify(easy.pointer) != 0
    }

    private func broken(_ code: CURLcode, _ call: String) -> TransportError {
        wire.canWrite = false
        wire.isSpent = true
        let text = words(for: code)
        return TransportError(
            TransportError.isRefusal(text) ? .tlsHandshake : .connectionLost,
            message: "\(call): \(text) (curl \(code.rawValue))")
    }

    private static let isClosed = TransportError(.connectionLost, message: "the connection is closed")
}
