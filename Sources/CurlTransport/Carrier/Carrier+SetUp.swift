import CLibcurl
import Reactor

// Options of the easy handle that makes a connection, and its callbacks.
extension Carrier {
    func setUp(_ errorText: UnsafeMutablePointer<CChar>) throws(TransportError) {
        let handle = unsafe easy.pointer
        let options = pool.options
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        let set = HandleOptions(easy)
        try unsafe set.set(CURLOPT_PRIVATE, pointer: userData, "CURLOPT_PRIVATE")
        if let line = origin.connectTo { unsafe dialling.connectTo = curl_slist_append(nil, line) }
        try unsafe set.setDial(origin.url, dialling.connectTo, hop, options, content, errorText: errorText)
        try check(unsafe heimdallr_easy_set_resolver(handle, beforeLookUp), "CURLOPT_RESOLVER_START_FUNCTION")
        try unsafe set.set(CURLOPT_RESOLVER_START_DATA, pointer: userData, "CURLOPT_RESOLVER_START_DATA")
        // For what a next proxy answers.
        try set.set(CURLOPT_BUFFERSIZE, 1024, "CURLOPT_BUFFERSIZE")
        if !hop.proxy.isEmpty {
            let steps = ProxySteps()
            dialling.steps = steps
            try set.count(steps)
        }
        if membership.use == .http2 {
            try offerHTTP2(set)
        } else {
            try check(unsafe heimdallr_easy_set_carrier_context(handle, silence), "CURLOPT_SSL_CTX_FUNCTION")
        }
        // libcurl would write to stdout by default.
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_WRITEFUNCTION, refuseData), "CURLOPT_WRITEFUNCTION")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_HEADERFUNCTION, ignoreData), "CURLOPT_HEADERFUNCTION")
        try check(unsafe heimdallr_easy_set_open(handle, openSocket), "CURLOPT_OPENSOCKETFUNCTION")
        try unsafe set.set(CURLOPT_OPENSOCKETDATA, pointer: userData, "CURLOPT_OPENSOCKETDATA")
        try check(unsafe heimdallr_easy_set_close(handle, closeCurlSocket), "CURLOPT_CLOSESOCKETFUNCTION")
        // libcurl may close a socket after the handle's end.
        try unsafe set.set(
            CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(sockets).toOpaque(), "CURLOPT_CLOSESOCKETDATA")
    }

    /// Offers HTTP/2 by ALPN. libcurl's own offer would make it speak HTTP/2 itself.
    private func offerHTTP2(_ set: HandleOptions) throws(TransportError) {
        let offer = UnsafeMutablePointer<heimdallr_http2_offer>.allocate(capacity: 1)
        // Behind an https proxy the first handshake is with that proxy, to which libcurl speaks HTTP/1.1.
        unsafe offer.initialize(to: heimdallr_http2_offer(silence: silence, skips: hop.isSecure ? 1 : 0))
        unsafe dialling.offer = offer
        try set.set(CURLOPT_SSL_ENABLE_ALPN, 0, "CURLOPT_SSL_ENABLE_ALPN")
        try check(unsafe heimdallr_easy_set_http2_context(easy.pointer, offer), "CURLOPT_SSL_CTX_FUNCTION")
    }

    func set(timeout: Duration) throws(TransportError) {
        try check(
            unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_CONNECTTIMEOUT_MS, max(1, timeout.wholeMilliseconds)),
            "CURLOPT_CONNECTTIMEOUT_MS")
    }

    var descriptor: Int32? {
        var descriptor: curl_socket_t = -1
        guard unsafe heimdallr_easy_get_socket(easy.pointer, CURLINFO_ACTIVESOCKET, &descriptor) == CURLE_OK,
            descriptor >= 0
        else { return nil }
        return descriptor
    }

    /// End of the origin's certificate; 0: unknown.
    var certificateEnd: Int64 {
        origin.scheme == .https ? unsafe heimdallr_easy_certificate_end(easy.pointer) : 0
    }

    func error(for code: CURLcode) -> TransportError {
        var systemError = 0
        _ = unsafe heimdallr_easy_get_long(easy.pointer, CURLINFO_OS_ERRNO, &systemError)
        var text = unsafe String(cString: curl_easy_strerror(code))
        if let own = unsafe dialling.errorText, unsafe own.pointee != 0 { text = unsafe String(cString: own) }
        let error = TransportError(
            code, message: text, systemError: systemError, sawResponse: false, verdict: dialling.verdict)
        guard !hop.proxy.isEmpty else { return error }
        // The failing peer is the next proxy, except for TLS through its tunnel.
        let isProxyAtFault = error.kind.isOfPeer || error.kind == .aborted
        return isProxyAtFault ? TransportError(.proxy, message: error.message) : error
    }

    fileprivate func open(_ address: SocketAddress?, family: Int32) -> curl_socket_t {
        guard let address else { return heimdallr_socket_bad }
        let verdict = pool.options.addressPolicy.judge(address)
        // `own` wins over the verdicts on the name's other addresses.
        if dialling.verdict != .own { dialling.verdict = verdict }
        return verdict == .allowed ? sockets.open(family: family) : heimdallr_socket_bad
    }
}

private func refuseData(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int { 0 }

private func ignoreData(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int { size * count }

/// libcurl asks for every host without known addresses, also for numeric ones. It has the addresses of names.
private func beforeLookUp(
    _ state: UnsafeMutableRawPointer?, _ reserved: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let carrier = unsafe Carrier.from(context) else { return 1 }
    return carrier.hasNumericHost ? 0 : 1
}

private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let carrier = unsafe Carrier.from(context), let address = unsafe address else { return heimdallr_socket_bad }
    return carrier.open(
        unsafe SocketAddress(UnsafePointer(heimdallr_sockaddr(address))), family: unsafe address.pointee.family)
}
