import CLibcurl
import Reactor

// What a handle is told once, and what it calls.
extension Transfer {
    /// What stays for the life of the handle; each option with its manual page's name.
    func setUp() throws(TransportError) {
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
        // No name is looked up by libcurl; if one were, removing its handle would wait for the resolver's thread
        // (CURLOPT_QUICK_EXIT(3)).
        try long(CURLOPT_QUICK_EXIT, 1, "CURLOPT_QUICK_EXIT")
        try long(CURLOPT_FOLLOWLOCATION, 0, "CURLOPT_FOLLOWLOCATION")
        try long(CURLOPT_HTTP09_ALLOWED, 0, "CURLOPT_HTTP09_ALLOWED")
        try long(CURLOPT_PATH_AS_IS, 1, "CURLOPT_PATH_AS_IS")
        try long(CURLOPT_NETRC, 0, "CURLOPT_NETRC")
        try long(
            CURLOPT_HTTP_VERSION, options.http2 ? heimdallr_http_2_tls : heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        try long(CURLOPT_HTTP_TRANSFER_DECODING, options.keepsChunks ? 0 : 1, "CURLOPT_HTTP_TRANSFER_DECODING")
        // HTTP/2 hangs on a response head larger than the buffer. Of a large one only the front is wiped.
        let bufferSize = options.http2 ? 131_072 : options.wipesAnswers ? 16_384 : 65_536
        try long(CURLOPT_BUFFERSIZE, bufferSize, "CURLOPT_BUFFERSIZE")
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
        let strictEnd =
            unsafe options.http2
            ? heimdallr_easy_set_bounded_end(handle, pool.silence)
            : options.wipesAnswers ? heimdallr_easy_set_wiped_context(handle) : heimdallr_easy_set_strict_end(handle)
        try check(strictEnd, "CURLOPT_SSL_CTX_FUNCTION")
        if !options.http2, !options.endsConnected {
            try long(CURLOPT_FORBID_REUSE, 1, "CURLOPT_FORBID_REUSE")
        }
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
        if options.nextProxy != .none {
            try long(CURLOPT_NOPROGRESS, 0, "CURLOPT_NOPROGRESS")
            try check(unsafe heimdallr_easy_set_progress(handle, countStep), "CURLOPT_XFERINFOFUNCTION")
            try unsafe pointer(CURLOPT_XFERINFODATA, userData, "CURLOPT_XFERINFODATA")
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
        try check(unsafe heimdallr_easy_set_resolver(handle, beforeLookUp), "CURLOPT_RESOLVER_START_FUNCTION")
        try unsafe pointer(CURLOPT_RESOLVER_START_DATA, userData, "CURLOPT_RESOLVER_START_DATA")
        // What a handle was told serves others for that long at most. Through a SOCKS proxy the upstream's address is
        // asked for once the proxy is connected to.
        try long(
            CURLOPT_DNS_CACHE_TIMEOUT,
            options.nextProxy == .none ? 1 : Int(options.connectTimeout.components.seconds) + 1,
            "CURLOPT_DNS_CACHE_TIMEOUT")
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

    private static let maxHeadBytes = 1 << 20

    fileprivate func header(_ line: Span<UInt8>) -> Bool {
        sawResponse = true
        headBytes += line.count
        guard !isCancelled, headBytes <= Self.maxHeadBytes, let delegate else { return false }
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
        guard sends == 1, !isCancelled, let delegate else { return false }
        lacksHTTP2 = unsafe pool.options.http2 && heimdallr_easy_speaks_http2(easy.pointer) == 0
        guard !lacksHTTP2 else { return false }
        isWithheld = !delegate.transferWillSend(self)
        return !isWithheld
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

private func countStep(
    _ context: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ uploadTotal: curl_off_t,
    _ uploadNow: curl_off_t
) -> Int32 {
    guard let transfer = unsafe Transfer.from(context) else { return 1 }
    guard let steps = transfer.steps else { return 0 }
    transfer.steps = steps + 1
    return steps < maxProxySteps ? 0 : 1
}

private func beforeSend(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ localPort: Int32
) -> Int32 {
    guard let transfer = unsafe Transfer.from(context) else { return 1 }
    transfer.steps = nil
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
    return transfer.pool.openSocket(family: unsafe address.pointee.family)
}

private func closeSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue().closeSocket(descriptor)
    return 0
}
