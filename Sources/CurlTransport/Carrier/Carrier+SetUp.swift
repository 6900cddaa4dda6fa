import CLibcurl

// Options of the easy handle that makes a connection, and its callbacks.
extension Carrier {
    func setCarrier() throws(TransportError) {
        try setUp()
        try setConnectOnly()
        // During the dial, libcurl reads only a next proxy's answer.
        try set(CURLOPT_BUFFERSIZE, 1024)
        if membership.use == .http2 {
            try offerHTTP2()
        } else {
            try check(unsafe heimdallr_easy_set_carrier_context(easy.pointer, silence), CURLOPT_SSL_CTX_FUNCTION)
        }
        // libcurl would write to stdout by default.
        try unsafe set(CURLOPT_WRITEFUNCTION, { _, _, _, _ in 0 }, data: CURLOPT_WRITEDATA)
    }

    /// Offers HTTP/2 by ALPN in place of libcurl. If libcurl made the offer, it would speak HTTP/2 itself.
    private func offerHTTP2() throws(TransportError) {
        let offer = UnsafeMutablePointer<heimdallr_http2_offer>.allocate(capacity: 1)
        // With an https proxy, the first handshake is with the proxy, to which libcurl speaks HTTP/1.1.
        unsafe offer.initialize(to: heimdallr_http2_offer(silence: silence, skips: hop.isSecure ? 1 : 0))
        unsafe self.offer = offer
        try set(CURLOPT_SSL_ENABLE_ALPN, 0)
        try check(unsafe heimdallr_easy_set_http2_context(easy.pointer, offer), CURLOPT_SSL_CTX_FUNCTION)
    }

    /// Returns the error of a failed dial. With a next proxy, kinds that only the proxy can cause become `proxy`.
    func dialError(for code: CURLcode) -> TransportError {
        approach?.failed()
        return blaming(error(for: code))
    }
}
