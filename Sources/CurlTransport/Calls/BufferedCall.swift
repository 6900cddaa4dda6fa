import CLibcurl
import HTTPMessage
import Reactor
import WireText

/// One request and its whole answer, by libcurl's easy interface (libcurl-easy(3)) on a separate connection. libcurl
/// does the framing and decoding, and keeps the answer's fields. Loop's thread only.
@safe final class BufferedCall: EasyHandle {
    typealias Failure = BufferedClient.Failure

    struct Progress {
        /// Number of bytes of the request's body that libcurl has.
        var uploaded = 0
        /// Number of bytes of all heads, including interim heads, and of trailers.
        var headBytes = 0
        /// Whether the final head has ended.
        var isHeadComplete = false
        var isSent = false
        var failure: Failure?
    }

    let request: BufferedClient.Request
    /// Lines for CURLOPT_HTTPHEADER(3).
    var fieldLines: UnsafeMutablePointer<curl_slist>?
    private let loop: EventLoop
    private var deadline = ContinuousClock.now
    private var timer: LoopTimer?
    var progress = Progress()
    private var body = ByteBuffer(isSecret: true)
    private var done: ((Failure?) -> Void)?

    /// - Throws: `TransportError` when libcurl lacks memory, or when the next proxy's URL is malformed.
    init(
        _ request: BufferedClient.Request, _ options: PoolOptions, on scope: CurlScope, loop: EventLoop
    ) throws(TransportError) {
        self.request = request
        self.loop = loop
        let hop = try NextHop(options.nextProxy, to: request.origin, tunnels: false)
        try super.init(options, to: request.origin, by: hop, on: scope)
        try setCall()
    }

    deinit { end() }

    // MARK: From start to end

    /// Begins the call, unless it was cancelled before.
    /// - Parameter done: called once, with `nil` for success. The closure may retain this object.
    func start(_ done: @escaping (Failure?) -> Void) {
        if let failure = progress.failure { return done(failure) }
        self.done = done
        timer = LoopTimer(on: loop) { [unowned self] in finish(.timeout) }
        timer?.schedule(after: request.timeout)
        deadline = .now + request.timeout
        scope?.calls.begin(self)
    }

    func dial() {
        dial(before: loop.now + options.connectTimeout) { [unowned self] in finish(.transport($0)) }
    }

    func cancel() {
        let failure = Failure.transport(TransportError(.aborted, message: "cancelled"))
        progress.failure = failure
        finish(failure)
    }

    override func ended(_ code: CURLcode) { finish(failure(for: code)) }

    private func finish(_ failure: Failure?) {
        guard let done else { return }
        self.done = nil
        timer = nil
        approach = nil
        stop()
        scope?.calls.end(self)
        done(failure)
        body.removeAll()
        end()
    }

    /// Stops libcurl's work, and frees the field lines. libcurl's `free` also wipes: it is `heimdallr_wipe_and_free`.
    private func end() {
        stop()
        unsafe curl_slist_free_all(fieldLines)
        unsafe fieldLines = nil
    }

    private func failure(for code: CURLcode) -> Failure? {
        if let failure = progress.failure { return failure }
        guard code != CURLE_OK else {
            if progress.isHeadComplete { return refusal.map { .transport($0) } }
            return .transport(TransportError(.responseTruncated, message: "answer ended within its head"))
        }
        if !progress.isSent { approach?.failed() }
        let error = error(for: code, sawResponse: progress.headBytes > 0)
        return .transport(progress.isSent ? error : blaming(error))
    }

    /// The next proxy's 407 in place of an answer: only a proxy answers so (RFC 9110, section 15.5.8).
    private var refusal: TransportError? {
        guard status == 407, hop.needsAbsoluteForm else { return nil }
        let challenges = fields.filter { $0.name.lowercased() == "proxy-authenticate" }.map { Array($0.value.utf8) }
        hop.noteRefusal(407)
        return TransportError(NextProxyRefusal(hop, status: 407, challenges: challenges))
    }

    // MARK: The answer

    var status: Int {
        var status = 0
        let code = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_RESPONSE_CODE, &status)
        return code == CURLE_OK ? status : 0
    }

    /// Fields of the final head, and behind them the trailers if the request takes these by `TE: trailers` (RFC 9110,
    /// section 10.1.4): curl_easy_nextheader(3).
    var fields: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        var last: UnsafeMutablePointer<curl_header>?
        let takesTrailers = request.fields.contains { $0 == ("TE", "trailers") }
        let kinds = UInt32(takesTrailers ? CURLH_HEADER | CURLH_TRAILER : CURLH_HEADER)
        while let field = unsafe curl_easy_nextheader(easy.pointer, kinds, -1, last) {
            // For an empty value, libcurl 7.88 returns its CR.
            let value = unsafe String(cString: field.pointee.value)
            fields.append(unsafe (String(cString: field.pointee.name), value == "\r" ? "" : value))
            unsafe last = field
        }
        return fields
    }

    func withBody<Result>(_ read: (Span<UInt8>) -> Result) -> Result { body.withBytes(read) }

    // MARK: Calls of libcurl

    private static let maxHeadBytes = 64 * 1024

    /// Receives a line of a head or of the trailers.
    override func head(_ line: Span<UInt8>) -> Bool {
        guard hop.address == nil || dialogue.isOver else { return super.head(line) }
        progress.headBytes += line.count
        guard progress.headBytes <= Self.maxHeadBytes else {
            progress.failure = .transport(
                TransportError(.responseMalformed, message: "the answer's head is too large"))
            return false
        }
        // The blank line ends the head. libcurl accepts a head that is cut off before this line.
        if line.count <= 2, status >= 200 { progress.isHeadComplete = true }
        return true
    }

    func content(_ bytes: Span<UInt8>) -> Bool {
        guard progress.headBytes > 0 else {
            progress.failure = .transport(
                HTTP2FirstFrame.isSettings(bytes)
                    ? .http2Only(isSecure: request.origin.scheme == .https)
                    : TransportError(.responseMalformed, message: "the answer is not HTTP"))
            return false
        }
        guard body.count + bytes.count <= request.maxBodyBytes else {
            progress.failure = .bodyTooLarge
            return false
        }
        body.append(bytes)
        return true
    }

    /// Returns whether libcurl may send the request. Refuses a repetition, which libcurl would try on a new connection.
    ///
    /// Refuses after the deadline, too: the token record's lease may have ended while the machine was suspended.
    func maySend() -> Bool {
        dialogue.isOver = true
        guard !progress.isSent else { return false }
        guard ContinuousClock.now < deadline else {
            progress.failure = .transport(TransportError(.withheld, message: "the request was not sent"))
            return false
        }
        progress.isSent = true
        options.counts?.countOpened()
        options.counts?.noteCertificate(end: certificateEnd)
        return true
    }
}

extension TransportError.Kind {
    /// Whether the nearest peer of the connection causes such a failure.
    var isOfPeer: Bool {
        switch self {
        case .connectionRefused, .connectionFailed, .connectionLost, .responseMalformed, .responseTruncated: true
        default: false
        }
    }
}
