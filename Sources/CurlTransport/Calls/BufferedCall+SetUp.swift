import CLibcurl
import Reactor
import WireText

// Options of a call's handle, and its callbacks.
extension BufferedCall {
    func setCall() throws(TransportError) {
        try setUp()
        try setVersion()
        if let path = options.unixSocket { try set(CURLOPT_UNIX_SOCKET_PATH, path) }
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_NETRC, 0)
        // Bytes without a head come as content, which `content` refuses. Only so it can tell HTTP/2.
        try set(CURLOPT_HTTP09_ALLOWED, 1)
        // The engine may be that of several clients.
        try set(CURLOPT_FRESH_CONNECT, 1)
        // Requests an answer without compression. libcurl decodes a compressed answer nevertheless, and `content` counts
        // the decoded bytes.
        if request.decodesAnswer { try set(CURLOPT_ACCEPT_ENCODING, "identity") }
        try set(CURLOPT_FORBID_REUSE, 1)
        // `heimdallr_wipe_and_free` wipes a buffer of this size completely, but only the front of a larger buffer.
        try set(CURLOPT_BUFFERSIZE, 16_384)
        try check(unsafe heimdallr_easy_set_wiped_context(easy.pointer), CURLOPT_SSL_CTX_FUNCTION)
        try setRequest()
        try unsafe set(CURLOPT_WRITEFUNCTION, takeBody, data: CURLOPT_WRITEDATA)
        try unsafe set(CURLOPT_READFUNCTION, giveBody, data: CURLOPT_READDATA)
        try check(unsafe heimdallr_easy_set_prereq(easy.pointer, beforeSend), CURLOPT_PREREQFUNCTION)
        try unsafe set(CURLOPT_PREREQDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
    }

    private func setRequest() throws(TransportError) {
        try set(CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_URL, origin.url + request.target.dropFirst())
        if let body = request.body {
            try set(CURLOPT_UPLOAD, 1)
            let size = curl_off_t(body.count)
            try check(
                unsafe heimdallr_easy_set_offset(easy.pointer, CURLOPT_INFILESIZE_LARGE, size), CURLOPT_INFILESIZE_LARGE
            )
        } else if request.method == "HEAD" {
            try set(CURLOPT_NOBODY, 1)
        }
        try set(CURLOPT_CUSTOMREQUEST, request.method)
        try add("Host", Array(origin.authority.utf8))
        for field in request.fields { try add(field.name, Array(field.value.utf8)) }
        for field in request.secretFields { try add(field.name, field.value) }
        // A line such as `Expect:` keeps libcurl from adding the field. After Expect, libcurl may hold the body back.
        let names = request.fields.map { $0.name.lowercased() } + request.secretFields.map { $0.name.lowercased() }
        for name in ["Accept", "Expect", "Proxy-Connection"] where !names.contains(name.lowercased()) {
            var line = ByteBuffer()
            line.append(Array("\(name):".utf8))
            try add(line)
        }
        try unsafe set(CURLOPT_HTTPHEADER, list: fieldLines)
    }

    private func add(_ name: String, _ value: any LentBytes) throws(TransportError) {
        var line = ByteBuffer(isSecret: true)
        line.append(Array(name.utf8))
        // `Name;` sends an empty field. With a colon, libcurl would omit the field (CURLOPT_HTTPHEADER(3)).
        line.append(value.count == 0 ? ";" : ": ")
        value.withSpan { line.append($0) }
        try add(line)
    }

    private func add(_ line: consuming ByteBuffer) throws(TransportError) {
        var line = line
        line.append(byte: 0)
        let longer = unsafe line.withUnsafeBase {
            unsafe curl_slist_append(fieldLines, $0.assumingMemoryBound(to: CChar.self))
        }
        guard let longer = unsafe longer else {
            throw TransportError(.internal, message: "curl_slist_append: out of memory")
        }
        unsafe fieldLines = longer
    }

    /// Gives libcurl the next piece of the request's body.
    fileprivate func upload(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let body = request.body else { return 0 }
        return body.withSpan { body in
            let piece = body.extracting(progress.uploaded...)
            let count = min(room.count, piece.count)
            unsafe piece.withUnsafeBytes { unsafe room.copyMemory(from: .init(rebasing: $0[..<count])) }
            progress.uploaded += count
            return count
        }
    }
}

private func takeBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let call = unsafe BufferedCall.from(context), let bytes = unsafe bytes else { return 0 }
    return unsafe call.content(UnsafeRawBufferPointer(start: bytes, count: size * count).span8) ? size * count : 0
}

private func giveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let call = unsafe BufferedCall.from(context), let bytes = unsafe bytes else { return heimdallr_read_abort }
    return unsafe call.upload(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}

private func beforeSend(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ localPort: Int32
) -> Int32 {
    unsafe BufferedCall.from(context)?.maySend() == true ? 0 : 1
}
