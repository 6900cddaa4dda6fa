import CLibssl
import Cryptography

/// The context in which every connection begins, until its ClientHello chooses another. Ticket keys belong to this
/// context, so they serve all hosts. The session ID context differs by host: another host's ticket is refused.
enum TLSFront {
    /// SSL_CTX, never freed.
    nonisolated(unsafe) private static let context: Result<OpaquePointer, CryptographyError> = unsafe make()

    /// Makes a connection in the server's role, which the caller owns. SSL_new(3), SSL_set_bio(3).
    static func newConnection(on wire: TLSWire) throws(CryptographyError) -> OpaquePointer {
        ERR_clear_error()
        guard let tls = unsafe SSL_new(try context.get()) else { throw Libssl.failure("SSL_new") }
        guard let bio = unsafe wire.makeBIO() else {
            unsafe SSL_free(tls)
            throw Libssl.failure("BIO_new")
        }
        unsafe SSL_set_bio(tls, bio, bio)
        unsafe SSL_set_accept_state(tls)
        return unsafe tls
    }

    /// Lets libssl's callbacks find the stream. The stream outlives `tls`, because the stream's `deinit` frees `tls`.
    static func set(owner: TLSServerStream, of tls: OpaquePointer) {
        _ = unsafe heimdallr_set_owner(tls, Unmanaged.passUnretained(owner).toOpaque())
    }

    private static func owner(of tls: OpaquePointer?) -> TLSServerStream? {
        unsafe heimdallr_owner(tls).map { unsafe Unmanaged<TLSServerStream>.fromOpaque($0).takeUnretainedValue() }
    }

    /// SSL_CTX_set_client_hello_cb(3), SSL_CTX_set_msg_callback(3)
    private static func make() -> Result<OpaquePointer, CryptographyError> {
        do throws(CryptographyError) {
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
            return unsafe .success(context)
        } catch { return unsafe .failure(error) }
    }
}
