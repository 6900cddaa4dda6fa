import CLibssl
import Cryptography
import Reactor
import Synchronization

/// The context in which every connection begins, until its ClientHello chooses another. Ticket keys belong to this
/// context, so they serve all hosts. The session ID context differs by host: another host's ticket is refused. Any
/// thread.
@safe final class TLSFront: Sendable {
    static let shared = TLSFront(keyLife: .seconds(3600))

    @safe private struct State {
        /// SSL_CTX, freed when the next one replaces it. Connections hold their own references.
        var context: OpaquePointer?
        /// Time at which the next context is due.
        var due = LoopTime(nanoseconds: 0)
    }

    /// Time for which ticket keys are used. libssl makes the keys of a new context, and never changes them.
    private let keyLife: Duration
    private let state = Mutex(State())

    init(keyLife: Duration) { self.keyLife = keyLife }

    deinit { state.withLock { unsafe SSL_CTX_free($0.context) } }

    /// Makes a connection in the server's role, which the caller owns. SSL_new(3), SSL_set_bio(3).
    func newConnection(on wire: TLSWire, at now: LoopTime) throws(CryptographyError) -> OpaquePointer {
        ERR_clear_error()
        guard let tls = unsafe try newConnection(at: now) else { throw Libssl.failure("SSL_new") }
        guard let bio = unsafe wire.makeBIO() else {
            unsafe SSL_free(tls)
            throw Libssl.failure("BIO_new")
        }
        unsafe SSL_set_bio(tls, bio, bio)
        unsafe SSL_set_accept_state(tls)
        return unsafe tls
    }

    private func newConnection(at now: LoopTime) throws(CryptographyError) -> OpaquePointer? {
        try unsafe state.withLock { state throws(CryptographyError) in
            if now >= state.due {
                let next = try unsafe Self.make()
                unsafe SSL_CTX_free(state.context)
                unsafe state.context = unsafe next
                state.due = now + keyLife
            }
            return unsafe SSL_new(state.context)
        }
    }

    /// Lets libssl's callbacks find the stream. The stream outlives `tls`, because the stream's `deinit` frees `tls`.
    static func set(owner: TLSServerStream, of tls: OpaquePointer) {
        _ = unsafe heimdallr_set_owner(tls, Unmanaged.passUnretained(owner).toOpaque())
    }

    private static func owner(of tls: OpaquePointer?) -> TLSServerStream? {
        unsafe heimdallr_owner(tls).map { unsafe Unmanaged<TLSServerStream>.fromOpaque($0).takeUnretainedValue() }
    }

    /// SSL_CTX_set_client_hello_cb(3), SSL_CTX_set_msg_callback(3)
    private static func make() throws(CryptographyError) -> OpaquePointer {
        let context = try unsafe Libssl.newContext()
        unsafe SSL_CTX_set_client_hello_cb(
            context,
            { tls, alert, _ in
                switch unsafe TLSFront.owner(of: tls)?.chooseContext() {
                case .goOn, nil: return SSL_CLIENT_HELLO_SUCCESS
                case .wait: return SSL_CLIENT_HELLO_RETRY
                case .alert(let number):
                    unsafe alert?.pointee = number
                    return SSL_CLIENT_HELLO_ERROR
                }
            }, nil)
        unsafe SSL_CTX_set_msg_callback(context) { sent, _, type, bytes, count, tls, _ in
            guard type == SSL3_RT_ALERT || type == SSL3_RT_HANDSHAKE else { return }
            unsafe TLSFront.owner(of: tls)?.heard(type, isSent: sent == 1, .init(start: bytes, count: count))
        }
        return unsafe context
    }
}
