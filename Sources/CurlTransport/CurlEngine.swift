import CLibcurl
import Reactor

/// A multi handle of libcurl on an event loop (libcurl-multi(3)). It runs easy handles, which make connections and
/// small calls. Loop's thread only.
@safe final class CurlEngine {
    let loop: EventLoop
    let sockets: CurlSockets
    /// State of the limit for TLS records without content, such as session tickets.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    private let multi: OpaquePointerBox
    private var timer: LoopTimer?
    /// Whether libcurl asked to be called at once.
    private var isKicked = false
    private var isDriving = false

    /// - Parameters:
    ///   - kept: number of connections that libcurl keeps. Above this number, libcurl closes the oldest connection.
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(keeping kept: Int, on loop: EventLoop) throws(TransportError) {
        LibcurlGlobal.initialize()
        guard let multi = unsafe curl_multi_init() else {
            throw TransportError(.internal, message: "curl_multi_init: out of memory")
        }
        self.loop = loop
        unsafe self.multi = OpaquePointerBox(UnsafeMutableRawPointer(multi))
        unsafe silence = .allocate(capacity: 1)
        unsafe silence.initialize(to: heimdallr_tls_silence())
        sockets = CurlSockets(loop: loop)
        sockets.ready = { [unowned self] descriptor, mask in drive { act(descriptor, mask) } }
        timer = LoopTimer(on: loop) { [unowned self] in drive { isKicked = true } }
        let own = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(unsafe heimdallr_multi_set_socket(multi, socketChanged), "CURLMOPT_SOCKETFUNCTION")
        try check(unsafe heimdallr_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, own), "CURLMOPT_SOCKETDATA")
        try check(unsafe heimdallr_multi_set_timer(multi, timerChanged), "CURLMOPT_TIMERFUNCTION")
        try check(unsafe heimdallr_multi_set_pointer(multi, CURLMOPT_TIMERDATA, own), "CURLMOPT_TIMERDATA")
        try check(unsafe heimdallr_multi_set_long(multi, CURLMOPT_MAXCONNECTS, kept), "CURLMOPT_MAXCONNECTS")
    }

    /// No easy handle is left, because each one holds this object.
    deinit {
        unsafe curl_multi_cleanup(multi.pointer)
        unsafe silence.deallocate()
    }

    /// Begins a handle's work. `EasyHandle.ended` is called later, never within this call.
    func begin(_ handle: EasyHandle) throws(TransportError) {
        // libcurl then sets its timer to 0, which fires in the loop's next turn.
        try check(unsafe curl_multi_add_handle(multi.pointer, handle.easy.pointer), "curl_multi_add_handle")
        handle.isRunning = true
    }

    func remove(_ handle: EasyHandle) {
        let code = unsafe curl_multi_remove_handle(multi.pointer, handle.easy.pointer)
        assert(code == CURLM_OK)
    }

    private func drive(_ body: () -> Void) {
        guard !isDriving else { return body() }
        isDriving = true
        body()
        // After this number of calls, the loop handles other events first.
        var kicks = 16
        repeat {
            while isKicked, kicks > 0 {
                isKicked = false
                kicks -= 1
                act(heimdallr_socket_timeout, 0)
            }
            sockets.wake()
            while let (handle, code) = nextResult() { handle.ended(code) }
        } while isKicked && kicks > 0 || sockets.hasWoken
        isDriving = false
        if isKicked {
            isKicked = false
            timer?.schedule(after: .zero)
        }
    }

    /// Tells libcurl the readiness of a socket, or by `heimdallr_socket_timeout` that its timer has fired.
    private func act(_ descriptor: curl_socket_t, _ mask: Int32) {
        var running: Int32 = 0
        unsafe silence.pointee.records = 0
        let code = unsafe curl_multi_socket_action(multi.pointer, descriptor, mask, &running)
        // The only possible error is a socket that libcurl no longer knows (libcurl-errors(3)).
        assert(code == CURLM_OK || code == CURLM_BAD_SOCKET)
    }

    private func nextResult() -> (EasyHandle, CURLcode)? {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi.pointer, &left) {
            var owner: UnsafeMutableRawPointer?
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
                unsafe heimdallr_easy_get_pointer(easy, CURLINFO_PRIVATE, &owner) == CURLE_OK,
                let handle = unsafe EasyHandle.from(owner)
            else { continue }
            return (handle, unsafe heimdallr_message_result(message))
        }
        return nil
    }

    /// - Parameter milliseconds: -1 stops libcurl's timer, 0 asks for a call at once.
    fileprivate func setTimer(_ milliseconds: Int) {
        if milliseconds < 0 {
            timer?.cancel()
        } else if milliseconds == 0, isDriving {
            isKicked = true
        } else {
            timer?.schedule(after: .milliseconds(milliseconds))
        }
    }

    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> CurlEngine? {
        unsafe context.map { unsafe Unmanaged<CurlEngine>.fromOpaque($0).takeUnretainedValue() }
    }
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ what: Int32, _ context: UnsafeMutableRawPointer?,
    _ own: UnsafeMutableRawPointer?
) -> Int32 {
    guard let engine = unsafe CurlEngine.from(context) else { return -1 }
    engine.sockets.want(what, of: descriptor)
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let engine = unsafe CurlEngine.from(context) else { return -1 }
    engine.setTimer(milliseconds)
    return 0
}
