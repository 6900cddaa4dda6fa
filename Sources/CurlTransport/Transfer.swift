import CLibcurl
import Glibc
import Reactor

/// What a transfer tells and asks its owner, on the loop's thread. All but `transferEnded` are called from within
/// libcurl: they may cancel this transfer, pause it or start others, never block.
public protocol TransferDelegate: AnyObject {
    /// A line of an answer's head with its CRLF, status line and blank line included; after the body, of its trailers.
    /// - Returns: whether to go on.
    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool
    /// A piece of the body, unframed.
    func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep
    /// Asks for the next piece of the request's body, unframed.
    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep
    /// What follows the body of a request whose length was unknown, asked for when the body has ended; the names and
    /// values have been checked. Sent over HTTP/1.1 only: libcurl drops them over HTTP/2.
    func requestTrailers(_ transfer: Transfer) -> [(name: [UInt8], value: [UInt8])]
    /// The last call: `nil` when libcurl is content. The transfer must not be used after it.
    func transferEnded(_ transfer: Transfer, error: TransportError?)
}

public enum BodyStep: Sendable {
    case taken
    /// Not taken: it comes again after `resumeBody`.
    case pause
    case abort
}

public enum UploadStep: Sendable {
    /// So many bytes were put in; not zero.
    case bytes(Int)
    /// Nothing now: asked again after `resumeUpload`, or when an answer's head is there.
    case wait
    case end
    /// The body will never be whole.
    case abort
}

/// How a request's body is framed.
public enum UploadLength: Sendable, Equatable {
    case noBody
    case known(UInt64)
    case unknown
    /// There is none, but the request asks for another protocol on the connection: once an answer has agreed (101),
    /// upload and body are its bytes, as they are. Over HTTP/1.1 on a connection of its own, through a next proxy by
    /// CONNECT.
    case upgrade
}

/// One exchange on a pooled easy handle. Got from `ConnectionPool.acquire`, filled in, started; the pool takes it back
/// after `transferEnded` or `cancel`. Loop's thread only.
@safe public final class Transfer {
    enum State { case idle, preparing, waiting, running }

    unowned let pool: ConnectionPool
    var easy: OpaquePointerBox
    var state = State.idle
    /// What it is spoken on, once libcurl has asked for one.
    var socket: CurlSocket?
    /// Held until the end, which the pool makes sure comes.
    var delegate: (any TransferDelegate)?

    private var fields = RequestFields()
    private var upload = UploadLength.noBody
    private var isHead = false
    private var hasAccept = false
    private var hasExpect = false

    private(set) var origin: Origin?

    // What the handle was told last, so that it is told again only when it differs.
    private var setOrigin: Origin?
    private var setMethod: [UInt8] = []
    private var setShape = Shape.none
    private var setSize: UInt64?
    private var setFresh = false
    private var setForbidsReuse = false
    private var connectTo: UnsafeMutablePointer<curl_slist>?
    private enum Shape { case none, plain, head, upload, upgrade }

    private let errorText: UnsafeMutablePointer<CChar>
    /// It has sent trailers (see `setTrailers`) or asked for an upgrade, or its handle could not be renewed (see
    /// `renewHandle`): not to be used again.
    var isSpent = false
    var trailers: UnsafeMutablePointer<curl_slist>?
    var isVerbose = false
    /// The answer's body ends with its connection.
    var endsByClose = false
    var tlsEnd: UnsafeMutablePointer<heimdallr_tls_end>?
    private var sends = 0
    private var uploaded: UInt64 = 0
    /// The delegate would not go on with the request's body.
    private var isAborted = false
    private var sawResponse = false
    private var isBodyPaused = false
    private var isUploadPaused = false
    /// The other side of an upgraded connection has ended.
    private var hasPeerEnded = false
    var isCancelled = false
    fileprivate(set) var verdict = AddressPolicy.Verdict.allowed
    var waitLimit: LoopTime?
    /// The connection alone, where that is all that was wanted.
    var connection: StreamSocket?

    /// Makes a handle with everything set that stays.
    init(pool: ConnectionPool) throws(TransportError) {
        self.pool = pool
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
        unsafe curl_slist_free_all(trailers)
        forgetTLSEnd()
        unsafe errorText.deallocate()
    }

    // MARK: Filling in

    /// Says where it goes. `method` and `target` go out byte for byte: the caller has checked that they hold no octet
    /// that could end the request line. Through a plain proxy, `target` must be the absolute form.
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
        isBodyPaused = false
        isUploadPaused = false
        hasPeerEnded = false
        isCancelled = false
        verdict = .allowed
        unsafe errorText.pointee = 0
        state = .preparing
        self.upload = upload
        self.isHead = isHead
        if setForbidsReuse { set(forbidsReuse: false) }
        setVerbose(false)
        if pool.options.nextProxy == .environment, origin.scheme == .http, upload != .upgrade, !target.isEmpty,
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
            case .upgrade: .upgrade
            }
        try set(shape: shape)
        if !method.elementsEqual(setMethod) {
            try check(set(CURLOPT_CUSTOMREQUEST, method), "CURLOPT_CUSTOMREQUEST")
            setMethod = []
            for index in method.indices { setMethod.append(method[index]) }
        }
    }

    /// Adds a field line. The caller has checked name and value (RFC 9110, section 5).
    public func append(name: Span<UInt8>, value: Span<UInt8>) {
        fields.append(name: name, value: value)
        guard name.count == 6 else { return }
        if name.isCaseInsensitively("accept") {
            hasAccept = true
        } else if name.isCaseInsensitively("expect") {
            hasExpect = true
        }
    }

    /// Hands it to libcurl, or to the pool's queue when `maxConnections` are under way.
    ///
    /// - Parameter fresh: on a connection of its own, for a request whose kept-alive connection just died.
    public func start(delegate: any TransferDelegate, fresh: Bool = false) throws(TransportError) {
        self.delegate = delegate
        if !hasAccept { fields.suppress("Accept:") }
        // Without this libcurl asks for 100-continue by itself and waits a second for it.
        if !hasExpect { fields.suppress("Expect:") }
        // Without this it would be chunked.
        if upload == .upgrade { fields.suppress("Transfer-Encoding:") }
        if pool.options.nextProxy != .none { fields.suppress("Proxy-Connection:") }
        let handle = unsafe easy.pointer
        try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_HTTPHEADER, fields.list()), "CURLOPT_HTTPHEADER")
        if setFresh != fresh, upload != .upgrade {
            try check(
                unsafe heimdallr_easy_set_long(handle, CURLOPT_FRESH_CONNECT, fresh ? 1 : 0), "CURLOPT_FRESH_CONNECT")
            setFresh = fresh
        }
        try pool.admit(self)
    }

    // MARK: Under way

    /// Ends it without another call to the delegate. A connection in mid-transfer is closed.
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

    /// Has the connection closed behind this exchange.
    public func forbidReuse() {
        if !setForbidsReuse { set(forbidsReuse: true) }
    }

    /// Passes the end of an upgraded connection's bytes on, where a connection can end on one side alone: not in TLS, as
    /// libcurl does it.
    /// - Returns: whether it could.
    public func endWriting() -> Bool {
        guard upload == .upgrade, origin?.scheme == .http, let socket else { return false }
        if case .url(let proxy) = pool.options.nextProxy, proxy.hasPrefix("https:") { return false }
        return shutdown(socket.descriptor, Int32(SHUT_WR)) == 0
    }

    private func set(forbidsReuse: Bool) {
        let code = unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_FORBID_REUSE, forbidsReuse ? 1 : 0)
        assert(code == CURLE_OK)
        setForbidsReuse = forbidsReuse
    }

    /// libcurl looks at the connection no longer. With an upgrade it has seen the other side's end then, and would wait
    /// for ours without telling anybody.
    /// - Returns: whether it has to be told that there is nothing more from us.
    func noteEnd() -> Bool {
        guard upload == .upgrade, isUploadPaused, !isBodyPaused else { return false }
        hasPeerEnded = true
        isUploadPaused = false
        return true
    }

    func applyPause() -> CURLcode {
        let mask = (isBodyPaused ? CURLPAUSE_RECV : 0) | (isUploadPaused ? CURLPAUSE_SEND : 0)
        return unsafe curl_easy_pause(easy.pointer, mask)
    }

    /// Whether it is spoken over HTTP/2; known once an answer is there.
    public var isHTTP2: Bool {
        // libcurl believes the status line, so a server could say so in plain HTTP/1.
        guard pool.options.http2, origin?.scheme == .https else { return false }
        var version = 0
        return unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_HTTP_VERSION, &version) == CURLE_OK
            && version == heimdallr_http_2
    }

    func error(for code: CURLcode) -> TransportError? {
        guard code != CURLE_OK else {
            return isTLSCut
                ? TransportError(.responseTruncated, message: "the connection ended without close_notify") : nil
        }
        if isAborted { return TransportError(.aborted, message: "the request's body ended early") }
        var systemError = 0
        _ = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_OS_ERRNO, &systemError)
        let text =
            unsafe errorText.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
        let error = TransportError(
            code, message: text, systemError: systemError, sawResponse: sawResponse, verdict: verdict)
        return isProxyAtFault(error.kind) ? TransportError(.proxy, message: error.message) : error
    }

    /// Before the request was sent, a proxy in between is all there was to talk to, but for TLS through its tunnel.
    private func isProxyAtFault(_ kind: TransportError.Kind) -> Bool {
        guard case .url = pool.options.nextProxy, sends == 0 else { return false }
        switch kind {
        case .connectionRefused, .connectionFailed, .connectionLost, .responseMalformed, .responseTruncated: return true
        default: return false
        }
    }

    /// Forgets its owner and what was secret in the request.
    func recycle() {
        delegate = nil
        connection = nil
        fields.removeAll()
        forgetTLSEnd()
        _ = unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_HTTPHEADER, nil)
        if state == .running, !isSpent { renewHandle() }
        state = .idle
    }
}

// MARK: Options

extension Transfer {
    private func set(_ option: CURLoption, _ text: Span<UInt8>) -> CURLcode {
        pool.scratch.removeAll()
        pool.scratch.append(text)
        pool.scratch.append(byte: 0)
        let handle = unsafe easy.pointer
        return unsafe pool.scratch.withUnsafeBase {
            unsafe heimdallr_easy_set_string(handle, option, $0.assumingMemoryBound(to: CChar.self))
        }
    }

    private func set(origin: Origin) throws(TransportError) {
        let handle = unsafe easy.pointer
        // A parsed URL saves libcurl the parsing of every exchange (CURLOPT_CURLU(3)); the handle keeps a copy.
        try check(unsafe heimdallr_easy_set_string(handle, CURLOPT_URL, origin.url), "CURLOPT_URL")
        unsafe curl_slist_free_all(connectTo)
        unsafe connectTo = nil
        if let line = origin.connectTo { unsafe connectTo = curl_slist_append(nil, line) }
        try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_CONNECT_TO, connectTo), "CURLOPT_CONNECT_TO")
        setOrigin = origin
    }

    /// Where only libcurl knows whether a proxy is in between, it has to choose the form of the target itself.
    private func set(wholeURL origin: Origin, _ target: Span<UInt8>) throws(TransportError) {
        var url = Array(origin.url.utf8)
        for index in 1..<target.count { url.append(target[index]) }
        try check(set(CURLOPT_URL, url.span), "CURLOPT_URL")
        try check(
            unsafe heimdallr_easy_set_string(easy.pointer, CURLOPT_REQUEST_TARGET, nil), "CURLOPT_REQUEST_TARGET")
        setOrigin = nil
    }

    private func set(shape: Shape) throws(TransportError) {
        let handle = unsafe easy.pointer
        if setShape != shape {
            // HTTPGET first: it takes back what the other two changed.
            try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_HTTPGET, 1), "CURLOPT_HTTPGET")
            switch shape {
            case .head: try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_NOBODY, 1), "CURLOPT_NOBODY")
            case .upload: try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_UPLOAD, 1), "CURLOPT_UPLOAD")
            case .upgrade: try setUpgrade()
            case .plain, .none: break
            }
            setShape = shape
            setSize = nil
        }
        guard shape == .upload else { return }
        var size: Int64 = -1
        if case .known(let known) = upload {
            guard let exact = Int64(exactly: known) else {
                throw TransportError(.internal, message: "request body too large")
            }
            size = exact
        }
        if setSize != UInt64(bitPattern: size) {
            try check(
                unsafe heimdallr_easy_set_offset(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(size)),
                "CURLOPT_INFILESIZE_LARGE")
            setSize = UInt64(bitPattern: size)
        }
    }

    private func setUpgrade() throws(TransportError) {
        isSpent = true
        let handle = unsafe easy.pointer
        try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_UPLOAD, 1), "CURLOPT_UPLOAD")
        // The handle may have sent a body before: its length would be announced, and the upstream would wait for it.
        try check(unsafe heimdallr_easy_set_offset(handle, CURLOPT_INFILESIZE_LARGE, -1), "CURLOPT_INFILESIZE_LARGE")
        try check(
            unsafe heimdallr_easy_set_long(handle, CURLOPT_HTTP_VERSION, heimdallr_http_1_1), "CURLOPT_HTTP_VERSION")
        // Another protocol is nothing for a proxy that forwards requests.
        try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_HTTPPROXYTUNNEL, 1), "CURLOPT_HTTPPROXYTUNNEL")
        try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_FRESH_CONNECT, 1), "CURLOPT_FRESH_CONNECT")
        setFresh = true
        forbidReuse()
    }

    /// What stays for the life of the handle; each option with its manual page's name.
    private func setUp() throws(TransportError) {
        let handle = unsafe easy.pointer
        let options = pool.options
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        func long(_ option: CURLoption, _ value: Int, _ name: StaticString) throws(TransportError) {
            try check(unsafe heimdallr_easy_set_long(handle, option, value), name)
        }
        func string(_ option: CURLoption, _ value: String?, _ name: StaticString) throws(TransportError) {
            if let value {
                try check(unsafe heimdallr_easy_set_string(handle, option, value), name)
            } else {
                try check(unsafe heimdallr_easy_set_string(handle, option, nil), name)
            }
        }
        func pointer(_ option: CURLoption, _ value: UnsafeMutableRawPointer, _ name: StaticString)
            throws(TransportError)
        {
            try check(unsafe heimdallr_easy_set_pointer(handle, option, value), name)
        }

        try unsafe pointer(CURLOPT_PRIVATE, userData, "CURLOPT_PRIVATE")
        try unsafe pointer(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(errorText), "CURLOPT_ERRORBUFFER")
        try string(CURLOPT_PROTOCOLS_STR, "http,https", "CURLOPT_PROTOCOLS_STR")
        try string(CURLOPT_REDIR_PROTOCOLS_STR, "https", "CURLOPT_REDIR_PROTOCOLS_STR")
        try long(CURLOPT_NOSIGNAL, 1, "CURLOPT_NOSIGNAL")
        try long(CURLOPT_FOLLOWLOCATION, 0, "CURLOPT_FOLLOWLOCATION")
        try long(CURLOPT_HTTP09_ALLOWED, 0, "CURLOPT_HTTP09_ALLOWED")
        try long(CURLOPT_PATH_AS_IS, 1, "CURLOPT_PATH_AS_IS")
        try long(CURLOPT_NETRC, 0, "CURLOPT_NETRC")
        try long(
            CURLOPT_HTTP_VERSION, options.http2 ? heimdallr_http_2_tls : heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        try long(CURLOPT_HTTP_TRANSFER_DECODING, options.keepsChunks ? 0 : 1, "CURLOPT_HTTP_TRANSFER_DECODING")
        // HTTP/2 hangs on a response head larger than the buffer.
        try long(CURLOPT_BUFFERSIZE, options.http2 ? 131_072 : 65_536, "CURLOPT_BUFFERSIZE")
        // How long an upload waits for 100; past it, the delegate is asked for data as soon as there is any.
        try long(CURLOPT_EXPECT_100_TIMEOUT_MS, 1000, "CURLOPT_EXPECT_100_TIMEOUT_MS")
        try long(
            CURLOPT_CONNECTTIMEOUT_MS, max(1, options.connectTimeout.wholeMilliseconds), "CURLOPT_CONNECTTIMEOUT_MS")
        try long(
            CURLOPT_MAXLIFETIME_CONN, max(1, Int(options.maxConnectionAge.components.seconds)),
            "CURLOPT_MAXLIFETIME_CONN")
        try long(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE), "CURLOPT_HEADEROPT")
        try long(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1, "CURLOPT_SUPPRESS_CONNECT_HEADERS")
        try long(CURLOPT_SSL_VERIFYPEER, 1, "CURLOPT_SSL_VERIFYPEER")
        try long(CURLOPT_SSL_VERIFYHOST, 2, "CURLOPT_SSL_VERIFYHOST")
        try long(CURLOPT_SSLVERSION, heimdallr_tls_1_2, "CURLOPT_SSLVERSION")
        try check(unsafe heimdallr_easy_set_strict_end(handle), "CURLOPT_SSL_CTX_FUNCTION")
        if options.endsConnected { try long(CURLOPT_CONNECT_ONLY, 1, "CURLOPT_CONNECT_ONLY") }
        switch options.trustAnchors {
        case .system:
            // With a bundle alone libcurl parses it once and keeps it; with a directory too, for every connection.
            if pool.systemTrust.bundle != nil { try string(CURLOPT_CAPATH, nil, "CURLOPT_CAPATH") }
        case .systemAnd(let file):
            try string(CURLOPT_CAINFO, file, "CURLOPT_CAINFO")
            try string(CURLOPT_CAPATH, pool.systemTrust.directory, "CURLOPT_CAPATH")
        case .only(let file):
            try string(CURLOPT_CAINFO, file, "CURLOPT_CAINFO")
            try string(CURLOPT_CAPATH, nil, "CURLOPT_CAPATH")
        }
        if let file = options.certificateFile {
            try string(CURLOPT_SSLCERT, file, "CURLOPT_SSLCERT")
            try string(CURLOPT_SSLKEY, options.keyFile, "CURLOPT_SSLKEY")
        }
        switch options.nextProxy {
        case .none: try string(CURLOPT_PROXY, "", "CURLOPT_PROXY")
        case .environment: break
        case .url(let url):
            try string(CURLOPT_PROXY, url, "CURLOPT_PROXY")
            try string(CURLOPT_NOPROXY, "", "CURLOPT_NOPROXY")
        }
        try unsafe pointer(CURLOPT_SHARE, UnsafeMutableRawPointer(pool.share.pointer), "CURLOPT_SHARE")
        try check(
            unsafe heimdallr_easy_set_data(handle, CURLOPT_HEADERFUNCTION, receiveHeader), "CURLOPT_HEADERFUNCTION")
        try unsafe pointer(CURLOPT_HEADERDATA, userData, "CURLOPT_HEADERDATA")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_WRITEFUNCTION, receiveBody), "CURLOPT_WRITEFUNCTION")
        try unsafe pointer(CURLOPT_WRITEDATA, userData, "CURLOPT_WRITEDATA")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_READFUNCTION, provideUpload), "CURLOPT_READFUNCTION")
        try unsafe pointer(CURLOPT_READDATA, userData, "CURLOPT_READDATA")
        try check(unsafe heimdallr_easy_set_prereq(handle, beforeSend), "CURLOPT_PREREQFUNCTION")
        try unsafe pointer(CURLOPT_PREREQDATA, userData, "CURLOPT_PREREQDATA")
        try check(unsafe heimdallr_easy_set_open(handle, openSocket), "CURLOPT_OPENSOCKETFUNCTION")
        try unsafe pointer(CURLOPT_OPENSOCKETDATA, userData, "CURLOPT_OPENSOCKETDATA")
        try check(unsafe heimdallr_easy_set_close(handle, closeSocket), "CURLOPT_CLOSESOCKETFUNCTION")
        // The pool, not this handle: it is called after the handle is gone, too.
        try unsafe pointer(
            CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(pool).toOpaque(), "CURLOPT_CLOSESOCKETDATA")
    }
}

// MARK: What libcurl calls

extension Transfer {
    static func from(_ pointer: UnsafeMutableRawPointer?) -> Transfer? {
        unsafe pointer.map { unsafe Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }

    fileprivate func header(_ line: Span<UInt8>) -> Bool {
        sawResponse = true
        guard !isCancelled, let delegate else { return false }
        guard delegate.transfer(self, headerLine: line), !isCancelled else { return false }
        // libcurl gives up an upload that is refused, but not one that is paused: it would wait for it without end.
        if isUploadPaused, line.count == 2 { resumeUpload() }
        return true
    }

    fileprivate func body(_ bytes: Span<UInt8>) -> Int {
        guard !isCancelled, let delegate else { return 0 }
        let step = delegate.transfer(self, body: bytes)
        guard !isCancelled else { return 0 }
        switch step {
        case .taken: return bytes.count
        case .pause:
            isBodyPaused = true
            return heimdallr_write_pause
        case .abort: return 0
        }
    }

    fileprivate func upload(into buffer: inout MutableSpan<UInt8>) -> Int {
        guard !isCancelled, let delegate else { return heimdallr_read_abort }
        if hasPeerEnded { return 0 }
        let step = delegate.transfer(self, upload: &buffer)
        guard !isCancelled else { return heimdallr_read_abort }
        switch step {
        case .bytes(let count):
            uploaded += UInt64(count)
            return count
        case .wait:
            isUploadPaused = true
            return heimdallr_read_pause
        case .end:
            if self.upload == .unknown, !setTrailers(delegate.requestTrailers(self)) { break }
            // libcurl would wait for the rest of an announced length without end.
            if case .known(let length) = self.upload, uploaded < length { break }
            return 0
        case .abort: break
        }
        isAborted = true
        return heimdallr_read_abort
    }

    /// - Returns: whether libcurl may send. It may once: on a dead reused connection it would send again by itself.
    fileprivate func maySend() -> Bool {
        sends += 1
        return sends == 1 && !isCancelled
    }

    fileprivate func open(_ address: SocketAddress?) -> Int32 {
        guard let address else { return -1 }
        let verdict = pool.judge(address)
        // A name may have other addresses: what happened there says less than that this one is ours.
        if self.verdict != .own { self.verdict = verdict }
        return verdict == .allowed ? 0 : -1
    }
}

private func receiveHeader(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let transfer = unsafe Transfer.from(context), let bytes = unsafe bytes else { return 0 }
    let span = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count).span8
    return transfer.pool.calling { transfer.header(span) } ? size * count : 0
}

private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let transfer = unsafe Transfer.from(context), let bytes = unsafe bytes else { return 0 }
    guard size * count > 0 else { return 0 }
    let span = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count).span8
    return transfer.pool.calling { transfer.body(span) }
}

private func provideUpload(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let transfer = unsafe Transfer.from(context), let bytes = unsafe bytes else { return heimdallr_read_abort }
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size * count).bindMemory(to: UInt8.self)
    var span = unsafe buffer.mutableSpan
    return transfer.pool.calling { transfer.upload(into: &span) }
}

private func beforeSend(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ localPort: Int32
) -> Int32 {
    guard let transfer = unsafe Transfer.from(context), transfer.maySend() else { return 1 }
    return 0
}

private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let transfer = unsafe Transfer.from(context), let address = unsafe address,
        transfer.open(unsafe SocketAddress(UnsafePointer(heimdallr_sockaddr(address)))) == 0
    else { return heimdallr_socket_bad }
    return transfer.pool.openSocket(family: unsafe address.pointee.family)
}

private func closeSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue().closeSocket(descriptor)
    return 0
}
