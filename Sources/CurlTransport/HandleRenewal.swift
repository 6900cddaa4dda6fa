import CLibcurl

extension Transfer {
    /// libcurl before 8.1.1 keeps, in a handle that is used again, a pointer to the last field of the answer before,
    /// whose memory is freed (curl/curl#11101). An answer whose first field line begins with a space is appended to that
    /// field: an upstream could write into freed memory. There, a handle serves one exchange; its copy has all options
    /// and none of the state, and connections are not the handle's.
    func renewHandle() {
        guard LibcurlGlobal.hasLingeringField else { return }
        guard let copy = unsafe curl_easy_duphandle(easy.pointer) else {
            isSpent = true
            return
        }
        unsafe curl_easy_cleanup(easy.pointer)
        easy = unsafe OpaquePointerBox(copy)
        // The one option that is not copied.
        let code = unsafe heimdallr_easy_set_pointer(copy, CURLOPT_SHARE, UnsafeMutableRawPointer(pool.share.pointer))
        if code != CURLE_OK { isSpent = true }
    }
}

extension LibcurlGlobal {
    static let hasLingeringField: Bool = {
        guard let info = unsafe curl_version_info(CURLVERSION_TENTH) else { return true }
        return unsafe info.pointee.version_num < 0x08_01_01
    }()
}
