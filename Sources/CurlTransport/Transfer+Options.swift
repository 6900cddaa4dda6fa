import CLibcurl
import Reactor

// Options of one exchange, set only when they differ from the last one's.
extension Transfer {
    func set(_ option: CURLoption, _ text: Span<UInt8>) -> CURLcode {
        pool.scratch.removeAll()
        pool.scratch.append(text)
        pool.scratch.append(byte: 0)
        let handle = unsafe easy.pointer
        return unsafe pool.scratch.withUnsafeBase {
            unsafe heimdallr_easy_set_string(handle, option, $0.assumingMemoryBound(to: CChar.self))
        }
    }

    func set(origin: Origin) throws(TransportError) {
        let handle = unsafe easy.pointer
        try check(unsafe heimdallr_easy_set_string(handle, CURLOPT_URL, origin.url), "CURLOPT_URL")
        unsafe curl_slist_free_all(connectTo)
        unsafe connectTo = nil
        if let line = origin.connectTo { unsafe connectTo = curl_slist_append(nil, line) }
        try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_CONNECT_TO, connectTo), "CURLOPT_CONNECT_TO")
        setOrigin = origin
    }

    /// Lets libcurl choose the form of the target, because only libcurl knows whether it uses a proxy.
    func set(wholeURL origin: Origin, _ target: Span<UInt8>) throws(TransportError) {
        var url = Array(origin.url.utf8)
        for index in 1..<target.count { url.append(target[index]) }
        try check(set(CURLOPT_URL, url.span), "CURLOPT_URL")
        try check(
            unsafe heimdallr_easy_set_string(easy.pointer, CURLOPT_REQUEST_TARGET, nil), "CURLOPT_REQUEST_TARGET")
        setOrigin = nil
    }

    func set(shape: Shape) throws(TransportError) {
        let handle = unsafe easy.pointer
        if setShape != shape {
            // HTTPGET first: it resets the changes of the other two.
            try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_HTTPGET, 1), "CURLOPT_HTTPGET")
            switch shape {
            case .head: try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_NOBODY, 1), "CURLOPT_NOBODY")
            case .upload: try check(unsafe heimdallr_easy_set_long(handle, CURLOPT_UPLOAD, 1), "CURLOPT_UPLOAD")
            case .plain, .none: break
            }
            setShape = shape
            setSize = nil
        }
        guard shape == .upload else { return }
        var size: Int64 = -1
        if case .known(let known) = upload {
            guard let exact = Int64(exactly: known) else {
                throw TransportError(.internal, message: "request body too large")
            }
            size = exact
        }
        if setSize != UInt64(bitPattern: size) {
            try check(
                unsafe heimdallr_easy_set_offset(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(size)),
                "CURLOPT_INFILESIZE_LARGE")
            setSize = UInt64(bitPattern: size)
        }
    }
}
