import CLibcurl
import Reactor

/// Runs easy handles of libcurl on an event loop: connections to be made, and small calls. Loop's thread only.
@safe final class CurlEngine {
    let handle: MultiHandle
    private let ended: (UnsafeMutableRawPointer, CURLcode) -> Void
    private var timer: LoopTimer?
    /// libcurl asked to be called at once.
    private var isKicked = false
    private var isDriving = false

    /// - Parameters:
    ///   - maxConnections: more connections than this are never kept.
    ///   - ended: called when a handle's work is done, with its CURLOPT_PRIVATE(3).
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(
        maxConnections: Int, loop: EventLoop, ended: @escaping (UnsafeMutableRawPointer, CURLcode) -> Void
    ) throws(TransportError) {
        unsafe self.ended = ended
        handle = try MultiHandle(maxConnections: maxConnections, loop: loop)
        handle.sockets.ready = { [unowned self] descriptor, mask in drive { handle.act(descriptor, mask) } }
        handle.timerSet = { [unowned self] in setTimer($0) }
        timer = LoopTimer(on: loop) { [unowned self] in drive { isKicked = true } }
    }

    /// Begins a handle's work; `ended` comes later, never from within this call.
    func begin(_ easy: OpaquePointerBox) throws(TransportError) {
        try unsafe HandleOptions(easy).set(
            CURLOPT_SHARE, pointer: UnsafeMutableRawPointer(handle.share.pointer), "CURLOPT_SHARE")
        // libcurl sets its timer to 0, which the loop honours in its next turn.
        try handle.add(easy)
    }

    /// Ends a handle's work, and closes its connection. Not from within a callback of libcurl.
    func remove(_ easy: OpaquePointerBox) { handle.remove(easy) }

    private func drive(_ body: () -> Void) {
        guard !isDriving else { return body() }
        isDriving = true
        body()
        // Past this number, others have their turn.
        var kicks = 16
        repeat {
            while isKicked, kicks > 0 {
                isKicked = false
                kicks -= 1
                handle.act(heimdallr_socket_timeout, 0)
            }
            handle.sockets.wake()
            while let (owner, code) = unsafe handle.nextResult() { unsafe ended(owner, code) }
        } while isKicked && kicks > 0 || handle.sockets.hasWoken
        isDriving = false
        if isKicked {
            isKicked = false
            timer?.schedule(after: .zero)
        }
    }

    private func setTimer(_ milliseconds: Int) {
        if milliseconds < 0 {
            timer?.cancel()
        } else if milliseconds == 0, isDriving {
            isKicked = true
        } else {
            timer?.schedule(after: .milliseconds(milliseconds))
        }
    }
}
