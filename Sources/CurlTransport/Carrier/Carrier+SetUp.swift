import CLibcurl
import Reactor

// What libcurl is told to make a connection, and what it calls meanwhile.
extension Carrier {
    /// Each option with its manual page's name.
    func setUp(_ errorText: UnsafeMutablePointer<CChar>) throws(TransportError) {
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
        try string(CURLOPT_URL, origin.url, "CURLOPT_URL")
        if let line = origin.connectTo {
            unsafe connectTo = curl_slist_append(nil, line)
            try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_CONNECT_TO, connectTo), "CURLOPT_CONNECT_TO")
        }
        try long(CURLOPT_CONNECT_ONLY, 1, "CURLOPT_CONNECT_ONLY")
        try string(CURLOPT_PROTOCOLS_STR, "http,https", "CURLOPT_PROTOCOLS_STR")
        try long(CURLOPT_NOSIGNAL, 1, "CURLOPT_NOSIGNAL")
        // No name is looked up by libcurl; if one were, removing its handle would wait for the resolver's thread
        // (CURLOPT_QUICK_EXIT(3)).
        try long(CURLOPT_QUICK_EXIT, 1, "CURLOPT_QUICK_EXIT")
        try check(unsafe heimdallr_easy_set_resolver(handle, beforeLookUp), "CURLOPT_RESOLVER_START_FUNCTION")
        try unsafe pointer(CURLOPT_RESOLVER_START_DATA, userData, "CURLOPT_RESOLVER_START_DATA")
        // What a handle was told serves others for that long at most. Through a SOCKS proxy the upstream's address is
        // asked for once the proxy is connected to.
        try long(
            CURLOPT_DNS_CACHE_TIMEOUT, hop.proxy.isEmpty ? 1 : Int(options.connectTimeout.components.seconds) + 1,
            "CURLOPT_DNS_CACHE_TIMEOUT")
        try long(CURLOPT_HTTP_VERSION, heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        // For what a next proxy answers.
        try long(CURLOPT_BUFFERSIZE, 1024, "CURLOPT_BUFFERSIZE")
        try string(CURLOPT_PROXY, hop.proxy, "CURLOPT_PROXY")
        try string(CURLOPT_NOPROXY, "", "CURLOPT_NOPROXY")
        if !hop.proxy.isEmpty {
            try long(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1, "CURLOPT_SUPPRESS_CONNECT_HEADERS")
            if !hop.needsAbsoluteForm { try long(CURLOPT_HTTPPROXYTUNNEL, 1, "CURLOPT_HTTPPROXYTUNNEL") }
            // libcurl reads what a proxy answers byte by byte, for as long as there is any; it calls this for each.
            try long(CURLOPT_NOPROGRESS, 0, "CURLOPT_NOPROGRESS")
            try check(unsafe heimdallr_easy_set_progress(handle, countStep), "CURLOPT_XFERINFOFUNCTION")
            try unsafe pointer(CURLOPT_XFERINFODATA, userData, "CURLOPT_XFERINFODATA")
        }
        try long(CURLOPT_SSL_VERIFYPEER, 1, "CURLOPT_SSL_VERIFYPEER")
        try long(CURLOPT_SSL_VERIFYHOST, 2, "CURLOPT_SSL_VERIFYHOST")
        try long(CURLOPT_SSLVERSION, heimdallr_tls_1_2, "CURLOPT_SSLVERSION")
        try check(unsafe heimdallr_easy_set_carrier_context(handle, silence), "CURLOPT_SSL_CTX_FUNCTION")
        switch options.trustAnchors {
        case .system:
            // With a bundle alone libcurl parses it once and keeps it; with a directory too, for every connection.
            if SystemTrust.current.bundle != nil { try string(CURLOPT_CAPATH, nil, "CURLOPT_CAPATH") }
        case .systemAnd(let file):
            try string(CURLOPT_CAINFO, file, "CURLOPT_CAINFO")
            try string(CURLOPT_CAPATH, SystemTrust.current.directory, "CURLOPT_CAPATH")
        case .only(let file):
            try string(CURLOPT_CAINFO, file, "CURLOPT_CAINFO")
            try string(CURLOPT_CAPATH, nil, "CURLOPT_CAPATH")
        }
        if let file = options.certificateFile {
            try string(CURLOPT_SSLCERT, file, "CURLOPT_SSLCERT")
            try string(CURLOPT_SSLKEY, options.keyFile, "CURLOPT_SSLKEY")
        }
        // Nothing is to be written anywhere, and stdout is what libcurl would take.
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_WRITEFUNCTION, refuseData), "CURLOPT_WRITEFUNCTION")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_HEADERFUNCTION, ignoreData), "CURLOPT_HEADERFUNCTION")
        try check(unsafe heimdallr_easy_set_open(handle, openSocket), "CURLOPT_OPENSOCKETFUNCTION")
        try unsafe pointer(CURLOPT_OPENSOCKETDATA, userData, "CURLOPT_OPENSOCKETDATA")
        try check(unsafe heimdallr_easy_set_close(handle, closeSocket), "CURLOPT_CLOSESOCKETFUNCTION")
        // The pool, not this handle: it is called after the handle is gone, too.
        try unsafe pointer(
            CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(pool).toOpaque(), "CURLOPT_CLOSESOCKETDATA")
    }

    /// How long libcurl has for all of it.
    func set(timeout: Duration) throws(TransportError) {
        try check(
            unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_CONNECTTIMEOUT_MS, max(1, timeout.wholeMilliseconds)),
            "CURLOPT_CONNECTTIMEOUT_MS")
    }

    /// The socket that the connection stands on, once libcurl has made it.
    var descriptor: Int32? {
        var descriptor: curl_socket_t = -1
        guard unsafe heimdallr_easy_get_socket(easy.pointer, CURLINFO_ACTIVESOCKET, &descriptor) == CURLE_OK,
            descriptor >= 0
        else { return nil }
        return descriptor
    }

    /// Why no connection was made.
    func error(for code: CURLcode) -> TransportError {
        var systemError = 0
        _ = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_OS_ERRNO, &systemError)
        var text = unsafe String(cString: curl_easy_strerror(code))
        if let own = unsafe errorText, unsafe own.pointee != 0 { text = unsafe String(cString: own) }
        let error = TransportError(
            code, message: text, systemError: systemError, sawResponse: false, verdict: verdict)
        guard !hop.proxy.isEmpty else { return error }
        // A proxy in between is all there was to talk to, but for TLS through its tunnel.
        switch error.kind {
        case .connectionRefused, .connectionFailed, .connectionLost, .responseMalformed, .responseTruncated, .aborted:
            return TransportError(.proxy, message: error.message)
        default: return error
        }
    }

    fileprivate func open(_ address: SocketAddress?, family: Int32) -> curl_socket_t {
        guard let address else { return heimdallr_socket_bad }
        let verdict = pool.options.addressPolicy.judge(address)
        // A name may have other addresses: what happened there says less than that this one is ours.
        if self.verdict != .own { self.verdict = verdict }
        return verdict == .allowed ? pool.openSocket(family: family) : heimdallr_socket_bad
    }
}

/// No proxy has that much to say before a connection stands.
let maxProxySteps = 16 * 1024

private func countStep(
    _ context: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ uploadTotal: curl_off_t,
    _ uploadNow: curl_off_t
) -> Int32 {
    guard let carrier = unsafe Carrier.from(context) else { return 1 }
    carrier.steps += 1
    return carrier.steps > maxProxySteps ? 1 : 0
}

private func refuseData(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int { 0 }

private func ignoreData(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int { size * count }

/// libcurl asks for every host that it has no addresses of, written-out ones, too. Names it was told.
private func beforeLookUp(
    _ state: UnsafeMutableRawPointer?, _ reserved: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let carrier = unsafe Carrier.from(context) else { return 1 }
    return carrier.hasWrittenOutHost ? 0 : 1
}

private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let carrier = unsafe Carrier.from(context), let address = unsafe address else { return heimdallr_socket_bad }
    return carrier.open(
        unsafe SocketAddress(UnsafePointer(heimdallr_sockaddr(address))), family: unsafe address.pointee.family)
}

private func closeSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<CarrierPool>.fromOpaque(context).takeUnretainedValue().closeSocket(descriptor)
    return 0
}
