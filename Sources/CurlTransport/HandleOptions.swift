import CLibcurl
import Reactor

/// Sets options of an easy handle. An error names the option.
@safe struct HandleOptions {
    private let handle: UnsafeMutableRawPointer

    init(_ easy: OpaquePointerBox) { unsafe handle = easy.pointer }

    func set(_ option: CURLoption, _ value: Int, _ name: StaticString) throws(TransportError) {
        try check(unsafe heimdallr_easy_set_long(handle, option, value), name)
    }

    func set(_ option: CURLoption, _ value: String?, _ name: StaticString) throws(TransportError) {
        if let value {
            try check(unsafe heimdallr_easy_set_string(handle, option, value), name)
        } else {
            try check(unsafe heimdallr_easy_set_string(handle, option, nil), name)
        }
    }

    /// - Parameter value: outlives the handle.
    @unsafe func set(
        _ option: CURLoption, pointer value: UnsafeMutableRawPointer, _ name: StaticString
    ) throws(TransportError) {
        try check(unsafe heimdallr_easy_set_pointer(handle, option, value), name)
    }

    /// Sets the addresses of hosts, in lines of CURLOPT_RESOLVE(3).
    /// - Parameter list: replaced; outlives the handle.
    @unsafe func set(
        addresses lines: [String], _ list: inout UnsafeMutablePointer<curl_slist>?
    ) throws(TransportError) {
        unsafe curl_slist_free_all(list)
        unsafe list = nil
        for line in lines {
            guard let longer = unsafe curl_slist_append(list, line) else {
                throw TransportError(.internal, message: "curl_slist_append: out of memory")
            }
            unsafe list = longer
        }
        try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_RESOLVE, list), "CURLOPT_RESOLVE")
    }

    /// Sets the common options of all connections.
    /// - Parameters:
    ///   - content: outlives the handle; `nil`: libcurl reads the files.
    ///   - hasProxy: whether there is a next proxy.
    func setConnection(
        _ options: PoolOptions, _ content: TLSMaterial.Content?, hasProxy: Bool
    ) throws(TransportError) {
        try set(CURLOPT_PROTOCOLS_STR, "http,https", "CURLOPT_PROTOCOLS_STR")
        try set(CURLOPT_NOSIGNAL, 1, "CURLOPT_NOSIGNAL")
        // libcurl should look no name up. If it does, removing its handle must not wait for the resolver's thread
        // (CURLOPT_QUICK_EXIT(3)).
        try set(CURLOPT_QUICK_EXIT, 1, "CURLOPT_QUICK_EXIT")
        // The addresses given to a handle have to last for its dial: a SOCKS proxy needs the upstream's address after the
        // connection to the proxy. libcurl counts whole seconds of the wall clock.
        try set(
            CURLOPT_DNS_CACHE_TIMEOUT, Int(options.connectTimeout.components.seconds) + 1, "CURLOPT_DNS_CACHE_TIMEOUT")
        if hasProxy { try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1, "CURLOPT_SUPPRESS_CONNECT_HEADERS") }
        try setSecurity(options, content)
    }

    private func setSecurity(_ options: PoolOptions, _ content: TLSMaterial.Content?) throws(TransportError) {
        try set(CURLOPT_SSL_VERIFYPEER, 1, "CURLOPT_SSL_VERIFYPEER")
        try set(CURLOPT_SSL_VERIFYHOST, 2, "CURLOPT_SSL_VERIFYHOST")
        try set(CURLOPT_SSLVERSION, heimdallr_tls_1_2, "CURLOPT_SSLVERSION")
        switch options.trustAnchors {
        case .system:
            // libcurl caches a bundle alone, but parses a directory for every connection.
            if SystemTrust.current.bundle != nil { try set(CURLOPT_CAPATH, nil, "CURLOPT_CAPATH") }
        case .systemAnd(let file):
            try set(CURLOPT_CAINFO, content?.anchors?.path ?? file, "CURLOPT_CAINFO")
            try set(CURLOPT_CAPATH, SystemTrust.current.directory, "CURLOPT_CAPATH")
        case .only(let file):
            try set(CURLOPT_CAINFO, content?.anchors?.path ?? file, "CURLOPT_CAINFO")
            try set(CURLOPT_CAPATH, nil, "CURLOPT_CAPATH")
        }
        if let file = options.certificateFile {
            try set(CURLOPT_SSLCERT, content?.certificate?.path ?? file, "CURLOPT_SSLCERT")
            try set(CURLOPT_SSLKEY, content?.key?.path ?? options.keyFile, "CURLOPT_SSLKEY")
        }
    }

    /// A connection that libcurl makes and its user speaks on: of the proxy (`Carrier`), and of a test (`ConnectionProbe`).
    /// - Parameters: `connectTo` and `errorText` outlive the handle.
    @unsafe func setDial(
        _ url: String, _ connectTo: UnsafeMutablePointer<curl_slist>?, _ hop: NextHop, _ options: PoolOptions,
        _ content: TLSMaterial.Content?, errorText: UnsafeMutablePointer<CChar>
    ) throws(TransportError) {
        try unsafe set(CURLOPT_ERRORBUFFER, pointer: UnsafeMutableRawPointer(errorText), "CURLOPT_ERRORBUFFER")
        try set(CURLOPT_URL, url, "CURLOPT_URL")
        try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_CONNECT_TO, connectTo), "CURLOPT_CONNECT_TO")
        try set(CURLOPT_CONNECT_ONLY, 1, "CURLOPT_CONNECT_ONLY")
        try setConnection(options, content, hasProxy: !hop.proxy.isEmpty)
        try set(CURLOPT_HTTP_VERSION, heimdallr_http_1_1, "CURLOPT_HTTP_VERSION")
        try set(CURLOPT_PROXY, hop.proxy, "CURLOPT_PROXY")
        try set(CURLOPT_NOPROXY, "", "CURLOPT_NOPROXY")
        if !hop.proxy.isEmpty, !hop.needsAbsoluteForm {
            try set(CURLOPT_HTTPPROXYTUNNEL, 1, "CURLOPT_HTTPPROXYTUNNEL")
        }
    }

    /// Has libcurl call `steps` while it talks to a next proxy.
    func count(_ steps: ProxySteps) throws(TransportError) {
        try set(CURLOPT_NOPROGRESS, 0, "CURLOPT_NOPROGRESS")
        try check(unsafe heimdallr_easy_set_progress(handle, countStep), "CURLOPT_XFERINFOFUNCTION")
        try unsafe set(
            CURLOPT_XFERINFODATA, pointer: Unmanaged.passUnretained(steps).toOpaque(), "CURLOPT_XFERINFODATA")
    }
}

/// Bounds the handshake with a next proxy: libcurl reads its answer byte by byte, without a limit, with one call for
/// each.
final class ProxySteps {
    /// Limit of calls, above any real proxy's answer.
    private static let most = 16 * 1024

    private var count = 0
    private var isOver = false

    func begin() {
        count = 0
        isOver = false
    }

    func end() { isOver = true }

    fileprivate func next() -> Bool {
        if isOver { return true }
        count += 1
        return count <= Self.most
    }
}

private func countStep(
    _ context: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ uploadTotal: curl_off_t,
    _ uploadNow: curl_off_t
) -> Int32 {
    guard let context = unsafe context else { return 1 }
    return unsafe Unmanaged<ProxySteps>.fromOpaque(context).takeUnretainedValue().next() ? 0 : 1
}
