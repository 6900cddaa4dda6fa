import CLibcurl

// libcurl before 8.1.1 keeps, in a handle that is used again, a pointer to the last field of the answer before, whose
// memory is freed (curl/curl#11101). An answer whose first field line begins with a space is appended to that field: an
// upstream could write into freed memory.
//
// libcurl shows a line to its log before it stores it, so that the first one of an answer can be looked at in time. A
// handle that has shown its first line is kept; every other is replaced by its copy, which has all options and none of
// the state. Connections are the pool's.
extension Transfer {
    /// A status line has come, and no field yet: watches for the first.
    func watchFirstField() {
        guard LibcurlGlobal.hasLingeringField, !hasShownField, pool.options.nextProxy == .none else { return }
        setVerbose(true)
    }

    /// A line of an answer's head, before libcurl stores it.
    func lookAtLine(_ line: UnsafeMutablePointer<CChar>, _ size: Int) {
        guard !hasShownField, !isFolded else { return }
        switch UInt8(bitPattern: unsafe line.pointee) {
        case UInt8(ascii: " "), UInt8(ascii: "\t"):
            isFolded = true
            // What begins with CR is the end of a head to libcurl, and not stored.
            unsafe line.pointee = CChar(bitPattern: UInt8(ascii: "\r"))
        case UInt8(ascii: "\r"), UInt8(ascii: "\n"): break
        default:
            if unsafe UnsafeRawBufferPointer(start: line, count: size).starts(with: "HTTP/".utf8) { return }
            hasShownField = true
            setVerbose(false)
        }
    }

    /// After an exchange.
    func renewHandle() {
        guard LibcurlGlobal.hasLingeringField, !hasShownField || isFolded else { return }
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
