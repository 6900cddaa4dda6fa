import CLibcurl

// Options of libcurl (curl_easy_setopt(3)).
extension EasyHandle {
    final func set(_ option: CURLoption, _ value: Int) throws(TransportError) {
        try check(unsafe heimdallr_easy_set_long(easy.pointer, option, value), option)
    }

    final func set(_ option: CURLoption, _ value: String?) throws(TransportError) {
        if let value {
            try check(unsafe heimdallr_easy_set_string(easy.pointer, option, value), option)
        } else {
            try check(unsafe heimdallr_easy_set_string(easy.pointer, option, nil), option)
        }
    }

    /// - Parameter value: must outlive the handle.
    @unsafe final func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) throws(TransportError) {
        try check(unsafe heimdallr_easy_set_pointer(easy.pointer, option, value), option)
    }

    /// - Parameter value: must outlive the handle.
    @unsafe final func set(
        _ option: CURLoption, list value: UnsafeMutablePointer<curl_slist>?
    ) throws(TransportError) {
        try check(unsafe heimdallr_easy_set_list(easy.pointer, option, value), option)
    }

    /// - Parameter data: the option that sets the function's context to this object.
    @unsafe final func set(
        _ option: CURLoption, _ function: heimdallr_data_callback?, data: CURLoption
    ) throws(TransportError) {
        try check(unsafe heimdallr_easy_set_data(easy.pointer, option, function), option)
        try unsafe set(data, pointer: Unmanaged.passUnretained(self).toOpaque())
    }

    /// Checks the result of setting an option. Only a bug here or a lack of memory can make this fail.
    final func check(_ code: CURLcode, _ option: CURLoption) throws(TransportError) {
        guard code != CURLE_OK else { return }
        let name = unsafe curl_easy_option_by_id(option).map { unsafe String(cString: $0.pointee.name) } ?? ""
        let words = unsafe String(cString: curl_easy_strerror(code))
        throw TransportError(.internal, message: "CURLOPT_\(name): \(words)")
    }
}
