import CLibcurl
import Reactor
import WireText

/// Memory that a call's handle refers to. It must outlive the handle's work.
@safe final class CallLists {
    var resolve: UnsafeMutablePointer<curl_slist>?
    fileprivate var connectTo: UnsafeMutablePointer<curl_slist>?
    fileprivate var fields: UnsafeMutablePointer<curl_slist>?
    fileprivate let errorText: UnsafeMutablePointer<CChar>

    init() {
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        free()
        unsafe errorText.deallocate()
    }

    /// libcurl's words for the last error; empty: none.
    var error: String { unsafe String(cString: errorText) }

    /// Frees the lists. libcurl's memory is wiped before.
    func free() {
        unsafe curl_slist_free_all(resolve)
        unsafe curl_slist_free_all(connectTo)
        unsafe curl_slist_free_all(fields)
        unsafe (resolve, connectTo, fields) = (nil, nil, nil)
    }

    /// Adds a line for CURLOPT_HTTPHEADER(3).
    fileprivate func add(_ line: consuming ByteBuffer) throws(TransportError) {
        var line = line
        line.append(byte: 0)
        let longer = unsafe line.withUnsafeBase {
            unsafe curl_slist_append(fields, $0.assumingMemoryBound(to: CChar.self))
        }
        guard let longer = unsafe longer else {
            throw TransportError(.internal, message: "curl_slist_append: out of memory")
        }
        unsafe fields = longer
    }
}

extension BufferedCall {
    func setUp() throws(TransportError) {
        let set = HandleOptions(easy)
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        try unsafe set.set(CURLOPT_PRIVATE, pointer: userData, "CURLOPT_PRIVATE")
        try unsafe set.set(
            CURLOPT_ERRORBUFFER, pointer: UnsafeMutableRawPointer(lists.errorText), "CURLOPT_ERRORBUFFER")
        try set.setConnection(options, options.material?.current, hasProxy: !hop.proxy.isEmpty)
        try set.set(CURLOPT_PROXY, hop.proxy, "CURLOPT_PROXY")
        try set.set(CURLOPT_NOPROXY, "", "CURLOPT_NOPROXY")
        if !hop.proxy.isEmpty { try set.count(steps) }
        try set.set(CURLOPT_FOLLOWLOCATION, 0, "CURLOPT_FOLLOWLOCATION")
        try set.set(CURLOPT_NETRC, 0, "CURLOPT_NETRC")
        try set.set(CURLOPT_HTTP09_ALLOWED, 0, "CURLOPT_HTTP09_ALLOWED")
        try set.set(CURLOPT_HTTP_VERSION, heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        try set.set(CURLOPT_FORBID_REUSE, 1, "CURLOPT_FORBID_REUSE")
        // Of a larger buffer only the front is wiped.
        try set.set(CURLOPT_BUFFERSIZE, 16_384, "CURLOPT_BUFFERSIZE")
        try check(unsafe heimdallr_easy_set_wiped_context(easy.pointer), "CURLOPT_SSL_CTX_FUNCTION")
        try setRequest(set)
        try unsafe setCallbacks(set, userData)
    }

    private func setRequest(_ set: HandleOptions) throws(TransportError) {
        let origin = request.origin
        try set.set(CURLOPT_PATH_AS_IS, 1, "CURLOPT_PATH_AS_IS")
        try set.set(CURLOPT_URL, origin.url + request.target.dropFirst(), "CURLOPT_URL")
        if let line = origin.connectTo { unsafe lists.connectTo = curl_slist_append(nil, line) }
        try check(
            unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_CONNECT_TO, lists.connectTo), "CURLOPT_CONNECT_TO")
        if let body = request.body {
            try set.set(CURLOPT_UPLOAD, 1, "CURLOPT_UPLOAD")
            try check(
                unsafe heimdallr_easy_set_offset(easy.pointer, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count)),
                "CURLOPT_INFILESIZE_LARGE")
        } else if request.method == "HEAD" {
            try set.set(CURLOPT_NOBODY, 1, "CURLOPT_NOBODY")
        }
        try set.set(CURLOPT_CUSTOMREQUEST, request.method, "CURLOPT_CUSTOMREQUEST")
        try addFields()
        try check(
            unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_HTTPHEADER, lists.fields), "CURLOPT_HTTPHEADER")
    }

    private func addFields() throws(TransportError) {
        try add("Host", Array(request.origin.authority.utf8))
        for field in request.fields { try add(field.name, Array(field.value.utf8)) }
        for field in request.secretFields { try add(field.name, field.value) }
        // libcurl adds these by itself. After Expect it may wait a second.
        let names = request.fields.map { $0.name.lowercased() } + request.secretFields.map { $0.name.lowercased() }
        for (name, line) in [("accept", "Accept:"), ("expect", "Expect:"), ("proxy-connection", "Proxy-Connection:")]
        where !names.contains(name) {
            var buffer = ByteBuffer()
            buffer.append(Array(line.utf8))
            try lists.add(buffer)
        }
    }

    private func add(_ name: String, _ value: any LentBytes) throws(TransportError) {
        var line = ByteBuffer(isSecret: true)
        line.append(Array(name.utf8))
        // `Name;` sends an empty field. With a colon libcurl would omit it (CURLOPT_HTTPHEADER(3)).
        line.append(value.count == 0 ? ";" : ": ")
        value.withSpan { line.append($0) }
        try lists.add(line)
    }

    @unsafe private func setCallbacks(
        _ set: HandleOptions, _ userData: UnsafeMutableRawPointer
    ) throws(TransportError) {
        let handle = unsafe easy.pointer
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_HEADERFUNCTION, takeHead), "CURLOPT_HEADERFUNCTION")
        try unsafe set.set(CURLOPT_HEADERDATA, pointer: userData, "CURLOPT_HEADERDATA")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_WRITEFUNCTION, takeBody), "CURLOPT_WRITEFUNCTION")
        try unsafe set.set(CURLOPT_WRITEDATA, pointer: userData, "CURLOPT_WRITEDATA")
        try check(unsafe heimdallr_easy_set_data(handle, CURLOPT_READFUNCTION, giveBody), "CURLOPT_READFUNCTION")
        try unsafe set.set(CURLOPT_READDATA, pointer: userData, "CURLOPT_READDATA")
        try check(unsafe heimdallr_easy_set_prereq(handle, beforeSend), "CURLOPT_PREREQFUNCTION")
        try unsafe set.set(CURLOPT_PREREQDATA, pointer: userData, "CURLOPT_PREREQDATA")
        try check(unsafe heimdallr_easy_set_resolver(handle, beforeLookUp), "CURLOPT_RESOLVER_START_FUNCTION")
        try unsafe set.set(CURLOPT_RESOLVER_START_DATA, pointer: userData, "CURLOPT_RESOLVER_START_DATA")
        try check(unsafe heimdallr_easy_set_open(handle, openSocket), "CURLOPT_OPENSOCKETFUNCTION")
        try unsafe set.set(CURLOPT_OPENSOCKETDATA, pointer: userData, "CURLOPT_OPENSOCKETDATA")
        try check(unsafe heimdallr_easy_set_close(handle, closeCurlSocket), "CURLOPT_CLOSESOCKETFUNCTION")
        // libcurl may close a socket after the handle's end.
        try unsafe set.set(
            CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(engine.handle.sockets).toOpaque(),
            "CURLOPT_CLOSESOCKETDATA")
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

    fileprivate func open(_ address: SocketAddress?, family: Int32) -> curl_socket_t {
        guard let address else { return heimdallr_socket_bad }
        let verdict = options.addressPolicy.judge(address)
        // `own` wins over the verdicts on the name's other addresses.
        if progress.verdict != .own { progress.verdict = verdict }
        return verdict == .allowed ? engine.handle.sockets.open(family: family) : heimdallr_socket_bad
    }
}

private func takeHead(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let call = unsafe BufferedCall.from(context), let bytes = unsafe bytes else { return 0 }
    return unsafe call.head(UnsafeRawBufferPointer(start: bytes, count: size * count).span8) ? size * count : 0
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

/// libcurl asks for every host without known addresses, also for numeric ones. It has the addresses of names.
private func beforeLookUp(
    _ state: UnsafeMutableRawPointer?, _ reserved: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    unsafe BufferedCall.from(context)?.hasNumericHost == true ? 0 : 1
}

private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let call = unsafe BufferedCall.from(context), let address = unsafe address else {
        return heimdallr_socket_bad
    }
    return call.open(
        unsafe SocketAddress(UnsafePointer(heimdallr_sockaddr(address))), family: unsafe address.pointee.family)
}
