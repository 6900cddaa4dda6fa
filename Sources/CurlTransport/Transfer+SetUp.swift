import CLibcurl
import Reactor

// Options set once for each handle, and its callbacks.
extension Transfer {
    func setUp() throws(TransportError) {
        let handle = unsafe easy.pointer
        let options = pool.options
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        let set = HandleOptions(easy)
        try unsafe set.set(CURLOPT_PRIVATE, pointer: userData, "CURLOPT_PRIVATE")
        try unsafe set.set(CURLOPT_ERRORBUFFER, pointer: UnsafeMutableRawPointer(errorText), "CURLOPT_ERRORBUFFER")
        // Asks for them again when they are too old.
        try set.setConnection(options, content, hasProxy: options.nextProxy != .none, isToldEachTime: false)
        try set.set(CURLOPT_REDIR_PROTOCOLS_STR, "https", "CURLOPT_REDIR_PROTOCOLS_STR")
        try set.set(CURLOPT_FOLLOWLOCATION, 0, "CURLOPT_FOLLOWLOCATION")
        try set.set(CURLOPT_HTTP09_ALLOWED, 0, "CURLOPT_HTTP09_ALLOWED")
        try set.set(CURLOPT_PATH_AS_IS, 1, "CURLOPT_PATH_AS_IS")
        try set.set(CURLOPT_NETRC, 0, "CURLOPT_NETRC")
        try set.set(
            CURLOPT_HTTP_VERSION, options.http2 ? heimdallr_http_2_tls : heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        try set.set(CURLOPT_HTTP_TRANSFER_DECODING, options.keepsChunks ? 0 : 1, "CURLOPT_HTTP_TRANSFER_DECODING")
        // HTTP/2 hangs on a response head larger than the buffer.
        let bufferSize = options.http2 ? 131_072 : 65_536
        try set.set(CURLOPT_BUFFERSIZE, bufferSize, "CURLOPT_BUFFERSIZE")
        // Wait of an upload for 100. After it, libcurl asks for data as soon as there is any.
        try set.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1000, "CURLOPT_EXPECT_100_TIMEOUT_MS")
        try set.set(
            CURLOPT_CONNECTTIMEOUT_MS, max(1, options.connectTimeout.wholeMilliseconds), "CURLOPT_CONNECTTIMEOUT_MS")
        try set.set(
            CURLOPT_MAXLIFETIME_CONN, max(1, Int(options.maxConnectionAge.components.seconds)),
            "CURLOPT_MAXLIFETIME_CONN")
        try set.set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE), "CURLOPT_HEADEROPT")
        let strictEnd =
            unsafe options.http2
            ? heimdallr_easy_set_bounded_end(handle, pool.handle.silence)
            : heimdallr_easy_set_strict_end(handle)
        try check(strictEnd, "CURLOPT_SSL_CTX_FUNCTION")
        if !options.http2, !options.endsConnected {
            try set.set(CURLOPT_FORBID_REUSE, 1, "CURLOPT_FORBID_REUSE")
        }
        if options.endsConnected { try set.set(CURLOPT_CONNECT_ONLY, 1, "CURLOPT_CONNECT_ONLY") }
        switch options.nextProxy {
        case .none: try set.set(CURLOPT_PROXY, "", "CURLOPT_PROXY")
        case .environment: break
        case .url(let url):
            try set.set(CURLOPT_PROXY, url, "CURLOPT_PROXY")
            try set.set(CURLOPT_NOPROXY, "", "CURLOPT_NOPROXY")
        }
        if options.nextProxy != .none { try set.count(steps) }
        try unsafe set.set(CURLOPT_SHARE, pointer: UnsafeMutableRawPointer(pool.handle.share.pointer), "CURLOPT_SHARE")
        try check(
            unsafe heimdallr_easy_set_data(handle, CURLOPT_HEADERFUNCTION, receiveHeader), "CURLOPT_HEADERFUNCTION")
        try unsafe set.set(CURLOPT_HEADERDATA, pointer: userData, "CURLOPT_HEADERDATA")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_WRITEFUNCTION, receiveBody), "CURLOPT_WRITEFUNCTION")
        try unsafe set.set(CURLOPT_WRITEDATA, pointer: userData, "CURLOPT_WRITEDATA")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_READFUNCTION, provideUpload), "CURLOPT_READFUNCTION")
        try unsafe set.set(CURLOPT_READDATA, pointer: userData, "CURLOPT_READDATA")
        try check(unsafe heimdallr_easy_set_prereq(handle, beforeSend), "CURLOPT_PREREQFUNCTION")
        try unsafe set.set(CURLOPT_PREREQDATA, pointer: userData, "CURLOPT_PREREQDATA")
        try check(unsafe heimdallr_easy_set_resolver(handle, beforeLookUp), "CURLOPT_RESOLVER_START_FUNCTION")
        try unsafe set.set(CURLOPT_RESOLVER_START_DATA, pointer: userData, "CURLOPT_RESOLVER_START_DATA")
        try check(unsafe heimdallr_easy_set_open(handle, openSocket), "CURLOPT_OPENSOCKETFUNCTION")
        try unsafe set.set(CURLOPT_OPENSOCKETDATA, pointer: userData, "CURLOPT_OPENSOCKETDATA")
        try check(unsafe heimdallr_easy_set_close(handle, closeCurlSocket), "CURLOPT_CLOSESOCKETFUNCTION")
        // libcurl may close a socket after the handle's end.
        try unsafe set.set(
            CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(pool.handle.sockets).toOpaque(),
            "CURLOPT_CLOSESOCKETDATA")
    }
}

// MARK: What libcurl calls

extension Transfer {
    static func from(_ pointer: UnsafeMutableRawPointer?) -> Transfer? {
        unsafe pointer.map { unsafe Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let maxHeadBytes = 1 << 20

    fileprivate func header(_ line: Span<UInt8>) -> Bool {
        sawResponse = true
        headBytes += line.count
        guard !isCancelled, headBytes <= Self.maxHeadBytes, let delegate else { return false }
        guard delegate.transfer(self, headerLine: line), !isCancelled else { return false }
        // libcurl ends a refused upload, but not a paused one: it would wait forever.
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
            // libcurl would wait forever for the rest of an announced length.
            if case .known(let length) = self.upload, uploaded < length { break }
            return 0
        case .abort: break
        }
        isAborted = true
        return heimdallr_read_abort
    }

    /// - Returns: whether libcurl may send. Only once: on a dead reused connection it would send again.
    fileprivate func maySend() -> Bool {
        sends += 1
        guard sends == 1, !isCancelled, let delegate else { return false }
        if let counts = pool.options.counts { count(in: counts) }
        lacksHTTP2 = unsafe pool.options.http2 && heimdallr_easy_speaks_http2(easy.pointer) == 0
        guard !lacksHTTP2 else { return false }
        isWithheld = !delegate.transferWillSend(self)
        return !isWithheld
    }

    private func count(in counts: ConnectionCounts) {
        guard !wasReused else { return counts.countReused() }
        counts.countOpened()
        guard origin?.scheme == .https else { return }
        counts.noteCertificate(end: unsafe heimdallr_easy_certificate_end(easy.pointer))
    }

    fileprivate func open(_ address: SocketAddress?) -> Int32 {
        guard let address else { return -1 }
        let verdict = pool.judge(address)
        // `own` wins over the verdicts on the name's other addresses.
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
    guard let transfer = unsafe Transfer.from(context) else { return 1 }
    transfer.steps.end()
    guard transfer.pool.calling({ transfer.maySend() }) else { return 1 }
    return 0
}

private func beforeLookUp(
    _ state: UnsafeMutableRawPointer?, _ reserved: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let transfer = unsafe Transfer.from(context) else { return 1 }
    return transfer.needsNoNames() ? 0 : 1
}

private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let transfer = unsafe Transfer.from(context), let address = unsafe address,
        transfer.open(unsafe SocketAddress(UnsafePointer(heimdallr_sockaddr(address)))) == 0
    else { return heimdallr_socket_bad }
    return transfer.pool.handle.sockets.open(family: unsafe address.pointee.family)
}
