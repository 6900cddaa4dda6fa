import CLibcurl
import Glibc
import Reactor

/// Gets connections from a `CarrierPool` and speaks on them. On the loop's thread; it may close, give back and ask for
/// connections from within each call.
public protocol CarrierOwner: AnyObject {
    /// The connection asked for: a fresh one, or one that was given back.
    func carrierArrived(_ carrier: Carrier)
    /// There will be none.
    func carrierFailed(_ error: TransportError)
    /// It may be worth to read or write again; the end of the connection shows in what `receive` or `send` answer.
    func carrierReady(_ carrier: Carrier)
    /// Whether a client still waits for the answer. In the queue, such owners come before others.
    var isWanted: Bool { get }
}

extension CarrierOwner {
    public var isWanted: Bool { true }
}

public enum CarrierSent: Sendable, Equatable {
    /// So many of the bytes went out; not zero.
    case bytes(Int)
    /// Nothing now; `carrierReady` says when to try again. Over TLS the bytes must then begin the next try, too, and
    /// none may be missing: a part of them is encrypted already.
    case wouldBlock
    case failed(TransportError)
}

public enum CarrierReceived: Sendable, Equatable {
    case bytes(Int)
    /// Nothing now; `carrierReady` says when to try again.
    case wouldBlock
    /// The other side has ended. Only then is a body whole that ends with its connection: the end of TCP without
    /// encryption, close_notify with it (RFC 9112, section 9.8).
    case end(isClean: Bool)
    case failed(TransportError)
}

/// One connection that libcurl has dialled, secured and carries, and that its user speaks on (CURLOPT_CONNECT_ONLY(3)).
/// Got from a `CarrierPool`; closed, or given back with `release`. Loop's thread only.
///
/// Readiness is edge-triggered: a user that reads less than there is, or stops writing before `wouldBlock`, is not told
/// again.
@safe public final class Carrier {
    enum Phase {
        case dialling, inUse, idle, closed
    }

    public unowned let pool: CarrierPool
    public let origin: Origin
    let hop: NextHop
    let easy: OpaquePointerBox
    let shelf: CarrierShelf
    let opened: LoopTime
    var phase = Phase.dialling
    /// What it is dialled for.
    var request: CarrierRequest?
    private var owner: (any CarrierOwner)?
    private var socket: CurlSocket?
    var idleSince = LoopTime(nanoseconds: 0)
    /// Of the pool's material, what it was made with.
    let content: TLSMaterial.Content?
    let generation: UInt64
    /// Number of the client certificate that it showed: `TLSMaterial.pair`.
    public var pair: UInt64 { content?.pair ?? 0 }
    /// Where it stands among the pool's.
    var place = 0

    /// By TLS: libcurl's bytes are not those on the wire.
    public let isSecured: Bool
    private var canRead = true
    private var canWrite = true
    private var isPeerClosed = false
    private var hasFailed = false
    /// It was reset: behind the other side's end, no read tells.
    public var isBroken: Bool { hasFailed }
    private var isSpent = false
    /// Our side of TLS has been ended, and what says so waits for room here.
    private var hasSaidEnd = false
    private var lastWords = ByteBuffer()
    /// One record with an alert has less.
    private static let maxLastWords = 512
    /// What TLS counts while nothing of use comes.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    var hasServed = false
    /// It has served another exchange before.
    public var isReused: Bool { hasServed }

    // While it is dialled.
    var errorText: UnsafeMutablePointer<CChar>?
    var connectTo: UnsafeMutablePointer<curl_slist>?
    var resolve: UnsafeMutablePointer<curl_slist>?
    /// The look-ups that it waits for.
    var names: NameRound?
    /// The connection has to stand by then.
    let deadline: LoopTime
    /// libcurl knows of it.
    var isAdded = false
    var verdict = AddressPolicy.Verdict.allowed
    /// Where a next proxy is talked to.
    var steps: ProxySteps?

    /// What fits into the caller's buffer at once is up to the caller.
    static let maxReceive = 256 * 1024

    init(
        pool: CarrierPool, engine: DialEngine, request: CarrierRequest, hop: NextHop, shelf: CarrierShelf,
        now: LoopTime
    ) throws(TransportError) {
        self.pool = pool
        generation = pool.options.material?.generation ?? 0
        content = pool.options.material?.current
        unsafe silence = engine.silence
        self.request = request
        origin = request.origin
        self.hop = hop
        self.shelf = shelf
        opened = now
        deadline = request.deadline
        isSecured = request.origin.scheme == .https || hop.isSecure
        guard let handle = unsafe curl_easy_init() else {
            throw TransportError(.internal, message: "curl_easy_init: out of memory")
        }
        unsafe easy = OpaquePointerBox(handle)
        let text = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe text.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe errorText = text
        try unsafe setUp(text)
    }

    deinit {
        unsafe curl_easy_cleanup(easy.pointer)
        unsafe errorText?.deallocate()
        unsafe curl_slist_free_all(connectTo)
        unsafe curl_slist_free_all(resolve)
    }

    static func from(_ pointer: UnsafeMutableRawPointer?) -> Carrier? {
        unsafe pointer.map { unsafe Unmanaged<Carrier>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: What it is

    /// Requests on it name their target in absolute form, since a proxy reads them.
    public var needsAbsoluteForm: Bool { hop.needsAbsoluteForm }
    /// The value of Proxy-Authorization for such requests; empty: none.
    public var proxyAuthorization: [UInt8] { hop.authorization }

    // MARK: Speaking

    /// Writes from the front of `bytes`, which are not empty.
    public func send(_ bytes: Span<UInt8>) -> CarrierSent {
        guard phase == .inUse else { return .failed(Self.isClosed) }
        guard canWrite else { return .wouldBlock }
        var count = 0
        let code = unsafe bytes.withUnsafeBytes {
            unsafe curl_easy_send(easy.pointer, $0.baseAddress, $0.count, &count)
        }
        if code == CURLE_OK {
            // Plain: what did not fit finds room at the next edge.
            if count < bytes.count, !isSecured { canWrite = false }
            return count > 0 ? .bytes(count) : .wouldBlock
        }
        if code == CURLE_AGAIN {
            canWrite = false
            return .wouldBlock
        }
        // What the other side said before it left may still be there.
        canRead = true
        return .failed(broken(code, "curl_easy_send"))
    }

    /// Reads at most `limit` bytes behind what `buffer` holds.
    public func receive(into buffer: inout ByteBuffer, limit: Int) -> CarrierReceived {
        guard phase == .inUse else { return .failed(Self.isClosed) }
        guard canRead else { return .wouldBlock }
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
        if code == CURLE_AGAIN {
            canRead = false
            return .wouldBlock
        }
        guard code == CURLE_OK else {
            canRead = false
            return .failed(broken(code, "curl_easy_recv"))
        }
        guard count > 0 else {
            canRead = false
            isSpent = true
            return .end(isClean: !isSecured || sawCloseNotify)
        }
        // Less than there was room for: the kernel's buffer is empty, and its next byte is a new edge (epoll(7)). TLS
        // gives one record at a time.
        if count < limit, !isSecured, !isPeerClosed { canRead = false }
        return .bytes(count)
    }

    /// Ends our side alone: by the end of TCP, or by close_notify. All that was to be sent must be out, and nothing may be
    /// sent any more. To be called again when there is room, until it is done.
    public func shutdownWriting() {
        guard canShutDownWriting, let socket else { return }
        guard isSecured else {
            _ = shutdown(socket.descriptor, Int32(SHUT_WR))
            return
        }
        if !hasSaidEnd {
            hasSaidEnd = true
            _ = unsafe lastWords.withSpareCapacity(Self.maxLastWords) {
                unsafe heimdallr_easy_close_notify(
                    easy.pointer, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), Self.maxLastWords)
            }
        }
        var words = ByteBuffer()
        swap(&words, &lastWords)
        guard !words.isEmpty else { return }
        let count = unsafe words.bytes.withUnsafeBytes {
            unsafe Glibc.send(socket.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if count > 0 { words.consume(count) }
        swap(&words, &lastWords)
    }

    /// Not where the proxy in between is spoken to by TLS: that is another connection's end.
    public var canShutDownWriting: Bool { phase == .inUse && socket != nil && !hop.isSecure }

    /// Not to be used for another message: `release` closes it.
    public func forbidReuse() { isSpent = true }

    /// Ends it; the owner is told nothing more.
    public func close() { pool.close(self) }

    /// The owner is done with it, after a whole answer to a whole request: it may serve another, or is closed.
    public func release() {
        guard phase == .inUse else { return }
        owner = nil
        guard !isSpent, !isPeerClosed, isQuiet else { return pool.close(self) }
        pool.keep(self)
    }

    // MARK: For the pool

    /// libcurl has made it.
    /// - Returns: whether it can be spoken on.
    func connect(_ socket: CurlSocket) -> TransportError? {
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
        guard
            // The handle would go on to write into what is gone.
            unsafe isSecured || heimdallr_easy_set_pointer(easy.pointer, CURLOPT_ERRORBUFFER, nil) == CURLE_OK,
            // It bounds what one read gives; libcurl's own buffer of that size is not made any more.
            unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_BUFFERSIZE, Self.maxReceive) == CURLE_OK
        else { return TransportError(.internal, message: "CURLOPT_BUFFERSIZE") }
        // libcurl takes a connection that was never used for one that it may close.
        var nothing = ByteBuffer()
        switch take(into: &nothing, limit: 64) {
        case .wouldBlock: return nil
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
        // Whatever TLS waited for may be there now.
        if isSecured || !readiness.isDisjoint(with: [.writable, .failed]) { canWrite = true }
        if isSecured || !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { canRead = true }
        if !readiness.isDisjoint(with: [.peerClosed, .failed]) { isPeerClosed = true }
        if readiness.contains(.error) { hasFailed = true }
        switch phase {
        case .inUse: owner?.carrierReady(self)
        // Nobody is to speak here: bytes would be taken for the next answer.
        case .idle: if isPeerClosed || !isQuiet { pool.close(self) }
        case .dialling, .closed: break
        }
    }

    /// Returns whether a request may be written: neither bytes nor an end has come since the last answer. epoll may
    /// report both too late, so this asks the kernel. The request's head follows at once, or `close`.
    public func isUntouched() -> Bool {
        guard isReused else { return true }
        guard !isPeerClosed, !hasFailed, let socket else { return false }
        if isSecured {
            // TLS alone has something to say on an idle connection, such as a session ticket.
            canRead = true
            return unsafe isQuiet && heimdallr_easy_has_part(easy.pointer) == 0
        }
        var byte: UInt8 = 0
        let count = unsafe recv(socket.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count < 0 && errno == EAGAIN
    }

    /// Whether there is nothing to read, neither bytes nor an end. Session tickets and the like, which TLS connections
    /// send when they please, are taken in by the way.
    private var isQuiet: Bool {
        guard canRead else { return true }
        var unasked = ByteBuffer()
        return take(into: &unasked, limit: 64) == .wouldBlock
    }

    /// Forgets everything that could call it.
    func end() {
        phase = .closed
        names = nil
        owner = nil
        socket?.carrier = nil
        socket = nil
    }

    private var sawCloseNotify: Bool {
        unsafe silence.pointee.ended == 0 && heimdallr_easy_saw_close_notify(easy.pointer) != 0
    }

    private func broken(_ code: CURLcode, _ call: String) -> TransportError {
        canWrite = false
        isSpent = true
        let words = unsafe errorText.map { unsafe String(cString: $0) } ?? ""
        let text = words.isEmpty ? unsafe String(cString: curl_easy_strerror(code)) : words
        return TransportError(
            TransportError.isRefusal(text) ? .tlsHandshake : .connectionLost,
            message: "\(call): \(text) (curl \(code.rawValue))")
    }

    private static let isClosed = TransportError(.connectionLost, message: "the connection is closed")
}
