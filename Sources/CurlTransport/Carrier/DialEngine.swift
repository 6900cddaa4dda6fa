import CLibcurl
import Reactor

/// Makes connections by libcurl. Once a connection is ready, its carrier gets the socket's readiness, and libcurl does not.
/// Loop's thread only.
final class DialEngine {
    let handle: MultiHandle
    private var timer: LoopTimer?
    /// libcurl asked to be called at once.
    private var isKicked = false
    private var isDriving = false
    /// Called at the end of a dial; `nil`: the connection is ready.
    var ended: (Carrier, TransportError?) -> Void = { _, _ in }

    /// - Parameter maxConnections: more handles than this are never added.
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(maxConnections: Int, loop: EventLoop) throws(TransportError) {
        // libcurl also counts carriers.
        handle = try MultiHandle(maxConnections: maxConnections + 16, loop: loop)
        handle.sockets.ready = { [unowned self] descriptor, mask in drive { handle.act(descriptor, mask) } }
        handle.timerSet = { [unowned self] in setTimer($0) }
        timer = LoopTimer(on: loop) { [unowned self] in drive { isKicked = true } }
    }

    /// Begins to make a connection; `ended` comes later, never from within this call.
    func begin(_ carrier: Carrier) throws(TransportError) {
        try unsafe HandleOptions(carrier.easy).set(
            CURLOPT_SHARE, pointer: UnsafeMutableRawPointer(handle.share.pointer), "CURLOPT_SHARE")
        // libcurl sets its timer to 0, which the loop honours in its next turn.
        try handle.add(carrier.easy)
    }

    /// Ends a connection, or the attempt to make one.
    func remove(_ carrier: Carrier) { handle.remove(carrier.easy) }

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
            while let (owner, code) = unsafe handle.nextResult() {
                guard let carrier = unsafe Carrier.from(owner) else { continue }
                ended(carrier, code == CURLE_OK ? nil : carrier.error(for: code))
            }
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
