import CLibcurl

// What libcurl tells in its log only (CURLOPT_DEBUGFUNCTION(3)), which is switched on where it matters.
extension Transfer {
    /// The answer has no body. If something follows it all the same, libcurl throws it away and keeps the connection; it
    /// is not used again.
    public func expectNoBody() { setVerbose(true) }

    func setVerbose(_ verbose: Bool) {
        guard isVerbose != verbose else { return }
        isVerbose = verbose
        let code = unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_VERBOSE, verbose ? 1 : 0)
        assert(code == CURLE_OK)
    }

    func setLog(_ userData: UnsafeMutableRawPointer) throws(TransportError) {
        let handle = unsafe easy.pointer
        try check(unsafe heimdallr_easy_set_debug(handle, readLog), "CURLOPT_DEBUGFUNCTION")
        try check(unsafe heimdallr_easy_set_pointer(handle, CURLOPT_DEBUGDATA, userData), "CURLOPT_DEBUGDATA")
    }
}

private func readLog(
    _ handle: UnsafeMutableRawPointer?, _ kind: curl_infotype, _ text: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard size > 0, let text = unsafe text, let transfer = unsafe Transfer.from(context) else { return 0 }
    switch kind {
    case CURLINFO_TEXT:
        if unsafe UnsafeRawBufferPointer(start: text, count: size).starts(with: "Excess found".utf8) {
            transfer.forbidReuse()
        }
    case CURLINFO_HEADER_IN: unsafe transfer.lookAtLine(text, size)
    default: break
    }
    return 0
}
