import CLibcurl
import Glibc
import HTTPMessage
import Reactor
import WireText

/// One connection that libcurl dials and secures (CURLOPT_CONNECT_ONLY(3)). Its owner speaks HTTP on it. The
/// owner gets a carrier from a `CarrierPool`, and ends its use by `close` or `release`. Loop's thread only.
///
/// Readiness is edge-triggered: an owner that leaves bytes unread, or stops writing before `wouldBlock`, gets no
/// further `carrierReady`.
@safe public final class Carrier: EasyHandle {
    public unowned let pool: CarrierPool
    var membership: Membership
    /// Request for which the connection is dialled.
    var request: CarrierRequest?
    /// Offer of HTTP/2 in the TLS handshakes; `nil` for no offer. The memory must outlive the dial.
    var offer: UnsafeMutablePointer<heimdallr_http2_offer>?
    var wire = Wire()
    var phase = Phase.dialling
    private(set) var owner: (any CarrierOwner)?
    private(set) var socket: CurlSocket?
    /// Fires some time after a reused connection got a request.
    var reactionTimer: LoopTimer?
    /// Number that identifies the client certificate used in the handshake: `TLSMaterial.certificateID`.
    public var certificateID: UInt64 { tlsContent?.certificateID ?? 0 }

    /// Whether TLS is used, to the origin or to a next proxy.
    public let isSecured: Bool
    /// Whether epoll reported an error, such as a reset. After the peer's end, a read does not report a reset.
    public var isBroken: Bool { wire.hasFailed }
    /// Unsent bytes of our close_notify.
    var closeNotify = ByteBuffer()
    /// State of the limit for TLS records without content, such as session tickets.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    /// Whether the connection has served an exchange before.
    public var isReused: Bool { membership.hasServed }
    /// Whether the connection may serve another request: it is not too old, and the TLS material has not changed.
    public var isYoung: Bool { pool.isYoung(self) }

    /// Upper bound for the bytes of one read.
    static let maxReceive = 256 * 1024

    init(
        pool: CarrierPool, scope: CurlScope, request: CarrierRequest, hop: NextHop, siblings: OriginCarriers,
        now: LoopTime
    ) throws(TransportError) {
        self.pool = pool
        self.request = request
        unsafe silence = scope.engine.silence
        membership = Membership(
            siblings: siblings, use: request.use, opened: now, generation: pool.options.trustGeneration)
        isSecured = request.origin.scheme == .https || hop.isSecure
        try super.init(pool.options, to: request.origin, by: hop, on: scope)
        try setCarrier()
    }

    deinit {
        stop()
        unsafe offer?.deallocate()
    }

    /// Whether requests need a target in absolute form, because a proxy reads them.
    public var needsAbsoluteForm: Bool { hop.needsAbsoluteForm }
    /// Value of Proxy-Authorization for the next such request; empty for none. A token serves once, for the connection.
    public var proxyAuthorization: [UInt8] {
        guard hop.takesToken else { return hop.authorization }
        return isReused ? [] : dialogue.token
    }

    // MARK: Sending and receiving

    /// Sends from the front of `bytes`, which must not be empty.
    public func send(_ bytes: Span<UInt8>) -> CarrierSent {
        guard phase == .inUse else { return .failed(Self.isClosed) }
        guard wire.canWrite else { return .wouldBlock }
        var count = 0
        let code = unsafe bytes.withUnsafeBytes {
            unsafe curl_easy_send(easy.pointer, $0.baseAddress, $0.count, &count)
        }
        if code == CURLE_OK {
            // Without TLS, a partial write means that the socket is full. The next edge reports room.
            if count < bytes.count, !isSecured { wire.canWrite = false }
            return count > 0 ? .bytes(count) : .wouldBlock
        }
        if code == CURLE_AGAIN {
            wire.canWrite = false
            return .wouldBlock
        }
        // Bytes that the peer sent before its end may still be readable.
        wire.canRead = true
        return .failed(broken(code, "curl_easy_send"))
    }

    /// Reads at most `limit` bytes and appends them to `buffer`.
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
        // Without TLS, a short read means that the kernel's buffer is empty, so the next byte causes an edge
        // (epoll(7)). A read through TLS returns one record, and more may be there.
        if count < limit, !isSecured, !wire.isPeerClosed { wire.canRead = false }
        return .bytes(count)
    }

    /// Forbids another exchange, so that `release` closes the connection.
    public func forbidReuse() { wire.isSpent = true }

    /// Closes the connection. The owner gets no further call.
    public func close() { pool.close(self) }

    /// Gives the connection back to the pool after a whole request and answer. The pool keeps or closes the connection.
    /// - Parameters:
    ///   - unused: whether the owner has not used the connection.
    ///   - bond: the only user of the connection from now on.
    public func release(unused: Bool = false, to bond: CarrierBond? = nil) {
        guard phase == .inUse else { return }
        owner = nil
        if !unused { membership.hasServed = true }
        guard !wire.isSpent, !wire.isPeerClosed, isQuiet else { return pool.close(self) }
        pool.keep(self, for: bond)
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
        // libcurl does not watch a socket that was connected when libcurl got it.
        engine?.sockets.watch(socket)
        approach = nil
        TCPPeer(socket.descriptor).probe()
        phase = .inUse
        request = nil
        if isSecured {
            // The memory stays: TLS may write the reason for a later failure into it.
            unsafe errorText?.pointee = 0
        } else {
            unsafe errorText?.deallocate()
            unsafe errorText = nil
        }
        do throws(TransportError) {
            // The memory was freed above.
            if !isSecured { try unsafe set(CURLOPT_ERRORBUFFER, pointer: nil) }
            // This limits one read. Once connected, libcurl does not allocate a buffer of this size.
            try set(CURLOPT_BUFFERSIZE, Self.maxReceive)
        } catch { return error }
        return membership.use == .socket ? nil : readFirst()
    }

    /// Reads once: libcurl may close a connection that was never used, and returns the SSL object only after a read.
    private func readFirst() -> TransportError? {
        var first = ByteBuffer()
        let received = take(into: &first, limit: 4096)
        wire.speaksHTTP2 =
            unsafe membership.use == .knownHTTP2
            || membership.use == .http2 && heimdallr_easy_speaks_http2(easy.pointer) != 0
        switch received {
        case .wouldBlock: return nil
        // An HTTP/2 server may send SETTINGS first (RFC 9113, section 3.4).
        case .bytes where wire.speaksHTTP2:
            wire.early = [UInt8](copying: first.bytes)
            return nil
        case .bytes:
            return HTTP2FirstFrame.isSettings(first.bytes)
                ? .http2Only(isSecure: isSecured)
                : TransportError(.responseMalformed, message: "the server sent bytes before a request")
        case .end: return TransportError(.connectionLost, message: "the connection ended before it was used")
        case .failed(let error): return error
        }
    }

    func use(by owner: any CarrierOwner, _ now: LoopTime) {
        phase = .inUse
        self.owner = owner
        if membership.hasServed { awaitReaction(now) }
    }

    func ready(_ readiness: Readiness) {
        // Over TLS, a read may need to write, and a write may need to read.
        if isSecured || !readiness.isDisjoint(with: [.writable, .failed]) { wire.canWrite = true }
        if isSecured || !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { wire.canRead = true }
        if !readiness.isDisjoint(with: [.peerClosed, .failed]) { wire.isPeerClosed = true }
        if readiness.contains(.error) { wire.hasFailed = true }
        switch phase {
        case .inUse: owner?.carrierReady(self)
        // An idle connection must be silent: its bytes would be read as the next answer.
        case .idle: if wire.isPeerClosed || !isQuiet { pool.close(self) }
        case .dialling, .closed: break
        }
    }

    /// Returns whether a request may be written: the connection was never idle, or neither bytes nor an end has arrived
    /// since the last answer. Asks the kernel, because epoll may report them too late. The caller has to send the
    /// request's head at once, or to close.
    public func isUntouched() -> Bool {
        guard membership.idleSince.nanoseconds > 0 else { return true }
        guard !wire.isPeerClosed, !wire.hasFailed else { return false }
        wire.canRead = true
        return isQuiet && !holdsBytes
    }

    /// Whether there is nothing to read, neither bytes nor an end. Also reads TLS messages without content, such as
    /// session tickets, which may arrive at any time.
    private var isQuiet: Bool {
        if wire.canRead, isEmpty { wire.canRead = false }
        guard wire.canRead else { return true }
        var unasked = ByteBuffer()
        return take(into: &unasked, limit: 64) == .wouldBlock
    }

    /// Whether neither the kernel nor TLS holds bytes or an end. Much cheaper than a read through TLS. Always `false`
    /// over TLS to a next proxy, which may hold bytes that can't be seen.
    var isEmpty: Bool {
        guard let socket, !hop.isSecure, !holdsBytes else { return false }
        var byte: UInt8 = 0
        let count = unsafe recv(socket.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count < 0 && errno == EAGAIN
    }

    /// Whether TLS holds bytes, perhaps a part of a record.
    private var holdsBytes: Bool { isSecured && (unsafe heimdallr_easy_has_part(easy.pointer) != 0) }

    override func ended(_ code: CURLcode) { pool.dialled(self, code == CURLE_OK ? nil : dialError(for: code)) }

    /// Drops all references through which this carrier could be called, or call its owner.
    func end() {
        phase = .closed
        request = nil
        approach = nil
        reactionTimer = nil
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
