import CLibcurl
import Reactor

/// A multi handle of libcurl with its sockets and its timer. Loop's thread only.
@safe final class MultiHandle {
    private let multi: OpaquePointerBox
    /// Shares TLS sessions between easy handles.
    let share: OpaquePointerBox
    /// Counts TLS records without content, to bound them.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    let sockets: CurlSockets
    /// Called when libcurl sets its timer, in milliseconds: -1 stops it, 0 asks for a call at once.
    var timerSet: (Int) -> Void = { _ in }

    /// - Parameter maxConnections: number of connections that libcurl keeps. Past it, libcurl closes the oldest.
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(maxConnections: Int, loop: EventLoop) throws(TransportError) {
        LibcurlGlobal.initialize()
        guard let multi = unsafe curl_multi_init(), let share = unsafe curl_share_init() else {
            throw TransportError(.internal, message: "curl_multi_init: out of memory")
        }
        unsafe self.multi = OpaquePointerBox(UnsafeMutableRawPointer(multi))
        unsafe self.share = OpaquePointerBox(UnsafeMutableRawPointer(share))
        unsafe silence = .allocate(capacity: 1)
        unsafe silence.initialize(to: heimdallr_tls_silence())
        sockets = CurlSockets(loop: loop)
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(unsafe heimdallr_multi_set_socket(multi, socketChanged), "CURLMOPT_SOCKETFUNCTION")
        try check(unsafe heimdallr_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, userData), "CURLMOPT_SOCKETDATA")
        try check(unsafe heimdallr_multi_set_timer(multi, timerChanged), "CURLMOPT_TIMERFUNCTION")
        try check(unsafe heimdallr_multi_set_pointer(multi, CURLMOPT_TIMERDATA, userData), "CURLMOPT_TIMERDATA")
        try check(unsafe heimdallr_multi_set_long(multi, CURLMOPT_MAXCONNECTS, maxConnections), "CURLMOPT_MAXCONNECTS")
        // Every handle can resume these TLS sessions. One thread, so no locks (CURLSHOPT_SHARE(3)).
        guard
            unsafe heimdallr_share_set_long(share, CURLSHOPT_SHARE, Int(CURL_LOCK_DATA_SSL_SESSION.rawValue))
                == CURLSHE_OK
        else { throw TransportError(.internal, message: "CURLSHOPT_SHARE") }
    }

    /// All easy handles must have been removed.
    deinit {
        unsafe curl_multi_cleanup(multi.pointer)
        unsafe curl_share_cleanup(share.pointer)
        unsafe silence.deallocate()
    }

    /// Lets libcurl keep further handles waiting (CURLMOPT_MAX_TOTAL_CONNECTIONS(3)).
    func limitConnections(to count: Int) throws(TransportError) {
        try check(
            unsafe heimdallr_multi_set_long(multi.pointer, CURLMOPT_MAX_TOTAL_CONNECTIONS, count),
            "CURLMOPT_MAX_TOTAL_CONNECTIONS")
    }

    func add(_ easy: OpaquePointerBox) throws(TransportError) {
        try check(unsafe curl_multi_add_handle(multi.pointer, easy.pointer), "curl_multi_add_handle")
    }

    func remove(_ easy: OpaquePointerBox) {
        let code = unsafe curl_multi_remove_handle(multi.pointer, easy.pointer)
        assert(code == CURLM_OK)
    }

    /// Reports the readiness of a socket, or with `heimdallr_socket_timeout` the end of the timer.
    func act(_ descriptor: curl_socket_t, _ mask: Int32) {
        var running: Int32 = 0
        unsafe silence.pointee.records = 0
        let code = unsafe curl_multi_socket_action(multi.pointer, descriptor, mask, &running)
        // The only possible error is a socket that libcurl no longer knows (libcurl-errors(3)).
        assert(code == CURLM_OK || code == CURLM_BAD_SOCKET)
    }

    /// - Returns: CURLOPT_PRIVATE(3) of the easy handle, and its result.
    @unsafe func nextResult() -> (owner: UnsafeMutableRawPointer, code: CURLcode)? {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi.pointer, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle else {
                continue
            }
            let code = unsafe heimdallr_message_result(message)
            var owner: UnsafeMutableRawPointer?
            guard unsafe heimdallr_easy_get_pointer(easy, CURLINFO_PRIVATE, &owner) == CURLE_OK,
                let owner = unsafe owner
            else { continue }
            return unsafe (owner, code)
        }
        return nil
    }
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ what: Int32, _ context: UnsafeMutableRawPointer?,
    _ own: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context else { return -1 }
    unsafe Unmanaged<MultiHandle>.fromOpaque(context).takeUnretainedValue().sockets.want(what, of: descriptor)
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context else { return -1 }
    unsafe Unmanaged<MultiHandle>.fromOpaque(context).takeUnretainedValue().timerSet(milliseconds)
    return 0
}

/// For CURLOPT_CLOSESOCKETFUNCTION(3).
/// - Parameter context: the `CurlSockets`.
func closeCurlSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> Int32 {
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<CurlSockets>.fromOpaque(context).takeUnretainedValue().close(descriptor)
    return 0
}
