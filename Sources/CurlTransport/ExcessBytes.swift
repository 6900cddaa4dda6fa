import CLibcurl

// What libcurl says and does not do: bytes behind an answer without a body are thrown away, and the connection is kept.
extension Transfer {
    /// The answer has no body. If something follows it all the same, the connection is not used again; libcurl tells of
    /// that in its log only (CURLOPT_DEBUGFUNCTION(3)), which is switched on for the rest of this exchange.
    public func expectNoBody() {
        guard !isVerbose else { return }
        let handle = unsafe easy.pointer
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        guard unsafe heimdallr_easy_set_debug(handle, noteExcess) == CURLE_OK,
            unsafe heimdallr_easy_set_pointer(handle, CURLOPT_DEBUGDATA, userData) == CURLE_OK
        else { return forbidReuse() }
        setVerbose(true)
    }

    func setVerbose(_ verbose: Bool) {
        guard isVerbose != verbose else { return }
        isVerbose = verbose
        let code = unsafe heimdallr_easy_set_long(easy.pointer, CURLOPT_VERBOSE, verbose ? 1 : 0)
        assert(code == CURLE_OK)
    }
}

private func noteExcess(
    _ handle: UnsafeMutableRawPointer?, _ kind: curl_infotype, _ text: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard kind == CURLINFO_TEXT, let text = unsafe text, let transfer = unsafe Transfer.from(context) else { return 0 }
    let line = unsafe UnsafeRawBufferPointer(start: text, count: size)
    if unsafe line.starts(with: "Excess found".utf8) { transfer.forbidReuse() }
    return 0
}
