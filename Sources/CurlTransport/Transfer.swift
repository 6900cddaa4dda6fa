import CLibcurl
import Glibc
import Reactor
import WireText

/// Receives a transfer's events, on the loop's thread. All calls except `transferEnded` come from within libcurl: they
/// may cancel or pause this transfer or start others, but must not block.
public protocol TransferDelegate: AnyObject {
    /// The connection is ready, and the request is about to be sent: the last moment to change its fields (see
    /// `beginAgain`).
    /// - Returns: `false` to end it unsent, with `TransportError.Kind.withheld`.
    func transferWillSend(_ transfer: Transfer) -> Bool
    /// A line of an answer's head with CRLF, also the status line and the blank line; after the body, of its trailers.
    /// - Returns: whether to continue.
    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool
    /// A piece of the body, unframed.
    func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep
    /// Asks for the next piece of the request's body, unframed.
    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep
    /// The last call: `nil` for success. The transfer must not be used after it.
    func transferEnded(_ transfer: Transfer, error: TransportError?)
    /// Whether a client still waits for the answer. In the pool's queue, such transfers come before others.
    var isWanted: Bool { get }
}

extension TransferDelegate {
    public var isWanted: Bool { true }

    public func transferWillSend(_ transfer: Transfer) -> Bool { true }
}

public enum BodyStep: Sendable {
    case taken
    /// Not taken; comes again after `resumeBody`.
    case pause
    case abort
}

public enum UploadStep: Sendable {
    /// Number of bytes written, not zero.
    case bytes(Int)
    /// No bytes now. The next call comes after `resumeUpload`, or with an answer's head.
    case wait
    case end
    /// The body is incomplete.
    case abort
}

/// How a request's body is framed.
public enum UploadLength: Sendable, Equatable {
    case noBody
    case known(UInt64)
    case unknown
}

/// One exchange by libcurl's own engine, on an easy handle. A pool for HTTP/2 reuses handles and connections. Otherwise
/// both are new: libcurl's state of HTTP/1.1 can't be trusted after an exchange (curl/curl#11101, bytes after an
/// answer). Comes from `ConnectionPool.acquire`; the pool takes it back after `transferEnded` or `cancel`. Loop's
/// thread only.
@safe public final class Transfer {
    enum State { case idle, preparing, waiting, running }

    unowned let pool: ConnectionPool
    let easy: OpaquePointerBox
    var state = State.idle
    /// Held until the transfer's end, which the pool ensures.
    var delegate: (any TransferDelegate)?

    private var fields = RequestFields()
    var upload = UploadLength.noBody
    private var hasAccept = false
    private var hasExpect = false

    private(set) var origin: Origin?

    // Last values of options, which are set again only when they differ.
    var setOrigin: Origin?
    private var setMethod: [UInt8] = []
    var setShape = Shape.none
    var setSize: UInt64?
    var setFresh = false
    var connectTo: UnsafeMutablePointer<curl_slist>?
    enum Shape { case none, plain, head, upload }

    let errorText: UnsafeMutablePointer<CChar>
    var sends = 0
    var uploaded: UInt64 = 0
    var isAborted = false
    var sawResponse = false
    /// Bytes of all heads, interim ones too, and trailers; libcurl keeps them.
    var headBytes = 0
    let steps = ProxySteps()
    var isWithheld = false
    var lacksHTTP2 = false
    var isBodyPaused = false
    var isUploadPaused = false
    var isCancelled = false
    var verdict = AddressPolicy.Verdict.allowed
    var waitLimit: LoopTime?
    var missesName = false
    /// Current or finished look-ups.
    var names: NameLookUp?
    var rounds = 0
    var resolve: UnsafeMutablePointer<curl_slist>?
    /// The connection itself, with `endsConnected`.
    var connection: StreamSocket?
    let content: TLSMaterial.Content?
    let generation: UInt64
    /// Number of its connection's client certificate: `TLSMaterial.pair`.
    public var pair: UInt64 { content?.pair ?? 0 }

    init(pool: ConnectionPool) throws(TransportError) {
        self.pool = pool
        generation = pool.options.material?.generation ?? 0
        content = pool.options.material?.current
        guard let handle = unsafe curl_easy_init() else {
            throw TransportError(.internal, message: "curl_easy_init: out of memory")
        }
        unsafe easy = OpaquePointerBox(handle)
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        try setUp()
    }

    deinit {
        unsafe curl_easy_cleanup(easy.pointer)
        unsafe curl_slist_free_all(connectTo)
        unsafe curl_slist_free_all(resolve)
        unsafe errorText.deallocate()
    }

    // MARK: Filling in

    /// Sets the request's target. `method` and `target` are sent byte for byte: the caller has checked that no byte can
    /// end the request line. Through a plain proxy, `target` must be in absolute form.
    public func prepare(
        origin: Origin, method: Span<UInt8>, target: Span<UInt8>, isHead: Bool, upload: UploadLength
    ) throws(TransportError) {
        fields.removeAll()
        hasAccept = false
        hasExpect = false
        sends = 0
        uploaded = 0
        isAborted = false
        sawResponse = false
        headBytes = 0
        steps.begin()
        isWithheld = false
        lacksHTTP2 = false
        isBodyPaused = false
        isUploadPaused = false
        isCancelled = false
        verdict = .allowed
        unsafe errorText.pointee = 0
        state = .preparing
        self.upload = upload
        if pool.options.nextProxy == .environment, origin.scheme == .http, !target.isEmpty,
            target[0] == UInt8(ascii: "/")
        {
            try set(wholeURL: origin, target)
        } else {
            if setOrigin != origin { try set(origin: origin) }
            // CURLOPT_REQUEST_TARGET(3); libcurl copies it.
            try check(set(CURLOPT_REQUEST_TARGET, target), "CURLOPT_REQUEST_TARGET")
        }
        self.origin = origin
        let shape: Shape =
            switch upload {
            case .noBody: isHead ? .head : .plain
            case .known, .unknown: .upload
            }
        try set(shape: shape)
        if !method.elementsEqual(setMethod) {
            try check(set(CURLOPT_CUSTOMREQUEST, method), "CURLOPT_CUSTOMREQUEST")
            setMethod = [UInt8](copying: method)
        }
    }

    private static let accept = Array("accept".utf8)
    private static let expect = Array("expect".utf8)

    /// Adds a field line. The caller has checked name and value (RFC 9110, section 5).
    public func append(name: Span<UInt8>, value: Span<UInt8>) {
        fields.append(name: name, value: value)
        guard name.count == 6 else { return }
        if name.equalsIgnoringCase(Self.accept) {
            hasAccept = true
        } else if name.equalsIgnoringCase(Self.expect) {
            hasExpect = true
        }
    }

    /// Passes it to libcurl, or to the pool's queue.
    /// - Parameter fresh: requires a new connection, after a kept-alive one died.
    public func start(delegate: any TransferDelegate, fresh: Bool = false) throws(TransportError) {
        self.delegate = delegate
        try commitFields()
        if setFresh != fresh {
            try check(
                unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_FRESH_CONNECT, fresh ? 1 : 0),
                "CURLOPT_FRESH_CONNECT")
            setFresh = fresh
        }
        try pool.admit(self)
    }

    /// Sets a new target and drops the fields, within `transferWillSend`. Then the caller appends all fields and calls
    /// `commitFields`.
    /// - Returns: `false` if the target is part of the URL, which can't change any more.
    public func beginAgain(target: Span<UInt8>) -> Bool {
        guard setOrigin != nil, set(CURLOPT_REQUEST_TARGET, target) == CURLE_OK else { return false }
        fields.removeAll()
        hasAccept = false
        hasExpect = false
        return true
    }

    /// Passes the fields to libcurl, which does not copy them.
    public func commitFields() throws(TransportError) {
        if !hasAccept { fields.suppress("Accept:") }
        // Otherwise libcurl may ask for 100-continue and wait a second.
        if !hasExpect { fields.suppress("Expect:") }
        if pool.options.nextProxy != .none { fields.suppress("Proxy-Connection:") }
        try check(
            unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_HTTPHEADER, fields.list()), "CURLOPT_HTTPHEADER")
    }

    // MARK: Under way

    /// Whether it waits in the pool's queue, without a connection.
    public var isQueued: Bool { state == .waiting }

    /// Ends it without another call of the delegate. Closes a connection in mid-transfer.
    public func cancel() { pool.cancel(self) }

    public func resumeBody() {
        guard isBodyPaused else { return }
        isBodyPaused = false
        pool.applyPause(self)
    }

    public func resumeUpload() {
        guard isUploadPaused else { return }
        isUploadPaused = false
        pool.applyPause(self)
    }

    /// Whether its connection is a reused one. Valid from `transferWillSend` until the next exchange.
    public var wasReused: Bool {
        var made = 0
        return unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_NUM_CONNECTS, &made) == CURLE_OK && made == 0
    }

    func applyPause() -> CURLcode {
        let mask = (isBodyPaused ? CURLPAUSE_RECV : 0) | (isUploadPaused ? CURLPAUSE_SEND : 0)
        return unsafe curl_easy_pause(easy.pointer, mask)
    }

    /// Whether it uses HTTP/2; known after the answer's head.
    public var isHTTP2: Bool {
        // libcurl trusts the status line, so a server could claim it in plain HTTP/1.
        guard pool.options.http2, origin?.scheme == .https else { return false }
        var version = 0
        return unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_HTTP_VERSION, &version) == CURLE_OK
            && version == heimdallr_http_2
    }

    func error(for code: CURLcode) -> TransportError? {
        guard code != CURLE_OK else { return nil }
        if lacksHTTP2 { return TransportError(.http2Missing, message: "the server does not offer HTTP/2") }
        if isWithheld { return TransportError(.withheld, message: "the request was not sent") }
        if isAborted { return TransportError(.aborted, message: "the request's body ended early") }
        var systemError = 0
        _ = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_OS_ERRNO, &systemError)
        let text =
            unsafe errorText.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
        let error = TransportError(
            code, message: text, systemError: systemError, sawResponse: sawResponse, verdict: verdict)
        return isProxyAtFault(error.kind) ? TransportError(.proxy, message: error.message) : error
    }

    /// Whether the next proxy caused the error: it is the only peer before the request is sent, except for TLS through
    /// its tunnel.
    private func isProxyAtFault(_ kind: TransportError.Kind) -> Bool {
        guard case .url = pool.options.nextProxy, sends == 0 else { return false }
        switch kind {
        case .connectionRefused, .connectionFailed, .connectionLost, .responseMalformed, .responseTruncated: return true
        default: return false
        }
    }

    /// Drops its owner and the request's secrets.
    func recycle() {
        delegate = nil
        connection = nil
        fields.removeAll()
        forgetNames()
        _ = unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_HTTPHEADER, nil)
        state = .idle
    }
}
