import CLibcurl
import Glibc
import Reactor

/// libcurl's multi handle and its sockets, while it makes connections. Once one is there, its socket's readiness goes to
/// its carrier and libcurl is told of it no longer. Loop's thread only.
@safe final class DialEngine {
    private let loop: EventLoop
    private let multi: OpaquePointerBox
    private let share: OpaquePointerBox
    /// What TLS connections count while nothing of use comes.
    let silence: UnsafeMutablePointer<heimdallr_tls_silence>
    private var sockets: [Int32: CarrierSocket] = [:]
    private var timer: LoopTimer?
    /// libcurl asked to be called at once.
    private var isKicked = false
    private var isDriving = false
    private var woken: [CarrierSocket] = []
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
        self.loop = loop
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

    func socket(_ descriptor: Int32) -> CarrierSocket? { sockets[descriptor] }

    // MARK: Driving libcurl

    private func drive(_ body: () -> Void) {
        guard !isDriving else { return body() }
        isDriving = true
        body()
        // Whoever wants more than this lets others have their turn.
        var kicks = 16
        repeat {
            while isKicked, kicks > 0 {
                isKicked = false
                kicks -= 1
                act(heimdallr_socket_timeout, 0)
            }
            while let socket = woken.popLast() { socket.wake() }
            collect()
        } while isKicked && kicks > 0 || !woken.isEmpty
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

    func socketReady(_ descriptor: Int32, _ mask: Int32) { drive { act(descriptor, mask) } }

    func atNextTurn(_ socket: CarrierSocket) { loop.atNextTurn(socket) }

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

    // MARK: Sockets

    func open(family: Int32) -> curl_socket_t {
        let descriptor = Glibc.socket(family, heimdallr_socket_open_flags, 0)
        guard descriptor >= 0 else { return heimdallr_socket_bad }
        sockets[descriptor] = CarrierSocket(descriptor, engine: self, isTransient: false)
        return descriptor
    }

    func close(_ descriptor: curl_socket_t) {
        if let socket = sockets.removeValue(forKey: descriptor) {
            socket.wanted = 0
            socket.carrier = nil
            if socket.isRegistered { loop.unregister(descriptor) }
        }
        Glibc.close(descriptor)
    }

    fileprivate func want(_ what: Int32, of descriptor: curl_socket_t) {
        if what == CURL_POLL_REMOVE {
            guard let socket = sockets[descriptor] else { return }
            socket.wanted = 0
            // The resolver's wake-up pipe: libcurl closes it without a word.
            if socket.isTransient {
                loop.unregister(descriptor)
                sockets[descriptor] = nil
            }
            return
        }
        let socket = sockets[descriptor] ?? CarrierSocket(descriptor, engine: self, isTransient: true)
        sockets[descriptor] = socket
        let newly = what & ~socket.wanted
        socket.wanted = what
        if !socket.isRegistered {
            // Out of memory or watches: the dial then ends by its timeout.
            socket.isRegistered = (try? loop.register(descriptor, handler: socket)) != nil
        } else if socket.hasMissed {
            woken.append(socket)
        } else if newly & CURL_POLL_OUT != 0 {
            socket.lookAgain()
        }
    }
}

/// One socket of a dial, watched from its first use to its end.
final class CarrierSocket: ReadinessHandler, NextTurnHandler {
    let descriptor: Int32
    private unowned let engine: DialEngine
    /// Not opened by us: watched only while libcurl asks.
    let isTransient: Bool
    var isRegistered = false
    /// Whose it is once the connection stands.
    var carrier: Carrier?
    /// CURL_POLL_IN, CURL_POLL_OUT, both, or 0.
    var wanted: Int32 = 0
    private var missed: Readiness = []
    private var isLooking = false

    init(_ descriptor: Int32, engine: DialEngine, isTransient: Bool) {
        self.descriptor = descriptor
        self.engine = engine
        self.isTransient = isTransient
    }

    var hasMissed: Bool { !missed.isEmpty }

    func ready(_ readiness: Readiness) {
        if let carrier { return carrier.ready(readiness) }
        guard wanted != 0 else {
            missed.formUnion(readiness)
            return
        }
        act(readiness)
    }

    /// libcurl asks again after readiness came while it did not.
    func wake() {
        guard wanted != 0, hasMissed else { return }
        act(missed)
    }

    private func act(_ readiness: Readiness) {
        missed = []
        var mask: Int32 = 0
        if wanted & CURL_POLL_IN != 0, !readiness.isDisjoint(with: [.readable, .peerClosed]) {
            mask |= CURL_CSELECT_IN
        }
        if wanted & CURL_POLL_OUT != 0, readiness.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if !readiness.isDisjoint(with: .failed) {
            mask |= CURL_CSELECT_ERR | (wanted & CURL_POLL_IN != 0 ? CURL_CSELECT_IN : 0)
        }
        guard mask != 0 else { return }
        engine.socketReady(descriptor, mask)
    }

    /// libcurl wants to write on a socket that has been writable for a while, so that no new edge comes.
    func lookAgain() {
        guard !isLooking else { return }
        isLooking = true
        engine.atNextTurn(self)
    }

    func nextTurn() {
        isLooking = false
        guard carrier == nil, wanted & CURL_POLL_OUT != 0 else { return }
        var query = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // When it is not writable, an edge will come.
        guard unsafe poll(&query, 1, 0) > 0, query.revents & Int16(POLLOUT) != 0 else { return }
        act(.writable)
    }
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ what: Int32, _ context: UnsafeMutableRawPointer?,
    _ own: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context else { return -1 }
    unsafe Unmanaged<DialEngine>.fromOpaque(context).takeUnretainedValue().want(what, of: descriptor)
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context = unsafe context else { return -1 }
    unsafe Unmanaged<DialEngine>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds)
    return 0
}
