import CLibcurl
import Reactor

/// libcurl's multi handle and its sockets, while it makes connections. Once one is there, its socket's readiness goes to
/// its carrier and libcurl is told of it no longer. Loop's thread only.
@safe final class DialEngine {
    private let multi: OpaquePointerBox
    private let share: OpaquePointerBox
    /// What TLS connections count while nothing of use comes.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    let sockets: CurlSockets
    private var timer: LoopTimer?
    /// libcurl asked to be called at once.
    private var isKicked = false
    private var isDriving = false
    /// Told of a dial's end: `nil`, the connection stands.
    var ended: (Carrier, TransportError?) -> Void = { _, _ in }

    /// - Parameter maxConnections: more handles than this are never added.
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
        sockets.ready = { [unowned self] descriptor, mask in drive { act(descriptor, mask) } }
        timer = LoopTimer(on: loop) { [unowned self] in drive { isKicked = true } }
        let userData = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(unsafe heimdallr_multi_set_socket(multi, socketChanged), "CURLMOPT_SOCKETFUNCTION")
        try check(unsafe heimdallr_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, userData), "CURLMOPT_SOCKETDATA")
        try check(unsafe heimdallr_multi_set_timer(multi, timerChanged), "CURLMOPT_TIMERFUNCTION")
        try check(unsafe heimdallr_multi_set_pointer(multi, CURLMOPT_TIMERDATA, userData), "CURLMOPT_TIMERDATA")
        // libcurl closes the oldest of its connections past this, carriers too.
        try check(
            unsafe heimdallr_multi_set_long(multi, CURLMOPT_MAXCONNECTS, maxConnections + 16), "CURLMOPT_MAXCONNECTS")
        // TLS sessions are resumed whichever handle made them; one thread, so no locks (CURLSHOPT_SHARE(3)).
        guard
            unsafe heimdallr_share_set_long(share, CURLSHOPT_SHARE, Int(CURL_LOCK_DATA_SSL_SESSION.rawValue))
                == CURLSHE_OK
        else { throw TransportError(.internal, message: "CURLSHOPT_SHARE") }
    }

    /// Every handle has been removed.
    deinit {
        unsafe curl_multi_cleanup(multi.pointer)
        unsafe curl_share_cleanup(share.pointer)
        unsafe silence.deallocate()
    }

    /// Begins to make a connection; `ended` comes later, never from within this call.
    func begin(_ carrier: Carrier) throws(TransportError) {
        let handle = unsafe carrier.easy.pointer
        try check(
            unsafe heimdallr_easy_set_pointer(handle, CURLOPT_SHARE, UnsafeMutableRawPointer(share.pointer)),
            "CURLOPT_SHARE")
        // libcurl sets its timer to 0, which the loop honours in its next turn.
        try check(unsafe curl_multi_add_handle(multi.pointer, handle), "curl_multi_add_handle")
    }

    /// Ends a connection, or the attempt to make one.
    func remove(_ carrier: Carrier) {
        let code = unsafe curl_multi_remove_handle(multi.pointer, carrier.easy.pointer)
        assert(code == CURLM_OK)
    }

    // MARK: Driving libcurl

    private func drive(_ body: () -> Void) {
        guard !isDriving else { return body() }
        isDriving = true
        body()
        // Past this, others have their turn.
        var kicks = 16
        repeat {
            while isKicked, kicks > 0 {
                isKicked = false
                kicks -= 1
                act(heimdallr_socket_timeout, 0)
            }
            sockets.wake()
            collect()
        } while isKicked && kicks > 0 || sockets.hasWoken
        isDriving = false
        if isKicked {
            isKicked = false
            timer?.schedule(after: .zero)
        }
    }

    private func act(_ descriptor: curl_socket_t, _ mask: Int32) {
        var running: Int32 = 0
        unsafe silence.pointee.records = 0
        let code = unsafe curl_multi_socket_action(multi.pointer, descriptor, mask, &running)
        // A socket that libcurl forgot meanwhile is all that can go wrong here (libcurl-errors(3)).
        assert(code == CURLM_OK || code == CURLM_BAD_SOCKET)
    }

    private func collect() {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi.pointer, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle else {
                continue
            }
            let code = unsafe heimdallr_message_result(message)
            var pointer: UnsafeMutableRawPointer?
            guard unsafe heimdallr_easy_get_pointer(easy, CURLINFO_PRIVATE, &pointer) == CURLE_OK,
                let carrier = unsafe Carrier.from(pointer)
            else { continue }
            ended(carrier, code == CURLE_OK ? nil : carrier.error(for: code))
        }
    }

    fileprivate func setTimer(_ milliseconds: Int) {
        if milliseconds < 0 {
            timer?.cancel()
        } else if milliseconds == 0, isDriving {
            isKicked = true
        } else {
            timer?.schedule(after: .milliseconds(milliseconds))
        }
    }
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ what: Int32, _ context: UnsafeMutableRawPointer?,
    _ own: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context else { return -1 }
    unsafe Unmanaged<DialEngine>.fromOpaque(context).takeUnretainedValue().sockets.want(what, of: descriptor)
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context else { return -1 }
    unsafe Unmanaged<DialEngine>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds)
    return 0
}
