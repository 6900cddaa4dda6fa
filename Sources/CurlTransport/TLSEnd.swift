import CLibcurl

// A body that ends with its connection is whole only if TLS says that the connection was ended on purpose (RFC 9112,
// section 9.8). libcurl 7.88 takes the end of TCP for that.
extension Transfer {
    /// The answer has no framing: over TLS, it ends with close_notify or is cut.
    public func expectClose() {
        guard origin?.scheme == .https, !isHTTP2, !endsByClose else { return }
        endsByClose = true
        unsafe tlsEnd = heimdallr_tls_end_watch(easy.pointer, Self.tlsEndIndex)
    }

    /// Whether libcurl's word that all is well can be trusted.
    var isTLSCut: Bool {
        guard endsByClose else { return false }
        guard let end = unsafe tlsEnd else { return true }
        return unsafe end.pointee.notified == 0
    }

    func forgetTLSEnd() {
        guard endsByClose else { return }
        endsByClose = false
        unsafe heimdallr_tls_end_release(tlsEnd)
        unsafe tlsEnd = nil
    }

    private static let tlsEndIndex = heimdallr_tls_end_index()
}
