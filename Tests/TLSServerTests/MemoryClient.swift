import CLibssl
import TestSupport

/// A TLS client of libssl without a socket: its bytes are delivered and taken by hand. One thread.
@safe final class MemoryClient {
    private let context: OpaquePointer
    private let tls: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    private(set) var isDone = false
    private(set) var received: [UInt8] = []
    /// The server has sent close_notify.
    private(set) var hasServerEnded = false
    private(set) var hasFailed = false

    /// - Parameters:
    ///   - version: the only one, `TLS1_2_VERSION` or another; `nil`: 1.2 and 1.3.
    ///   - session: of an earlier client, to be resumed.
    ///   - trusts: `false`: refuses every certificate.
    ///   - identity: files of our own certificate and its key.
    ///   - early: bytes sent before the handshake; needs a session that permits them.
    init(
        name: String? = "one.test", protocols: [String] = ["http/1.1"], version: Int32? = nil,
        session: MemorySession? = nil, trusts: Bool = true,
        identity: (certificate: String, key: String)? = nil, early: [UInt8] = []
    ) throws {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()), let tls = unsafe SSL_new(context),
            let input = unsafe BIO_new(BIO_s_mem()), let output = unsafe BIO_new(BIO_s_mem())
        else { throw TestFailure("no client") }
        unsafe (self.context, self.tls, self.input, self.output) = unsafe (context, tls, input, output)
        unsafe SSL_set_bio(tls, input, output)
        unsafe SSL_set_connect_state(tls)
        if let version {
            unsafe SSL_set_security_level(tls, 0)
            unsafe SSL_ctrl(tls, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
            unsafe SSL_ctrl(tls, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
        }
        if let name {
            var bytes = name.utf8CString
            _ = unsafe bytes.withUnsafeMutableBytes {
                unsafe SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), $0.baseAddress)
            }
        }
        let list = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        if !list.isEmpty { _ = unsafe SSL_set_alpn_protos(tls, list, UInt32(list.count)) }
        if let session { _ = unsafe SSL_set_session(tls, session.session) }
        if let identity {
            unsafe SSL_use_certificate_file(tls, identity.certificate, SSL_FILETYPE_PEM)
            unsafe SSL_use_PrivateKey_file(tls, identity.key, SSL_FILETYPE_PEM)
        }
        if !trusts { unsafe SSL_set_verify(tls, SSL_VERIFY_PEER, nil) }
        var count = 0
        if !early.isEmpty, unsafe SSL_write_early_data(tls, early, early.count, &count) != 1 {
            throw TestFailure("no early data")
        }
    }

    deinit {
        unsafe SSL_free(tls)
        unsafe SSL_CTX_free(context)
    }

    /// Gives bytes of the server to libssl, and reads what they say.
    func deliver(_ bytes: [UInt8]) {
        if !bytes.isEmpty { _ = unsafe BIO_write(input, bytes, Int32(bytes.count)) }
        goOn()
    }

    /// Goes on with the handshake, or reads.
    func goOn() {
        ERR_clear_error()
        guard isDone else {
            let code = unsafe SSL_do_handshake(tls)
            isDone = code == 1
            if code != 1, unsafe SSL_get_error(tls, code) != SSL_ERROR_WANT_READ { hasFailed = true }
            return
        }
        var piece = [UInt8](repeating: 0, count: 16384)
        while true {
            let count = unsafe SSL_read(tls, &piece, Int32(piece.count))
            guard count > 0 else {
                switch unsafe SSL_get_error(tls, count) {
                case SSL_ERROR_WANT_READ: return
                case SSL_ERROR_ZERO_RETURN: hasServerEnded = true
                default: hasFailed = true
                }
                return
            }
            received += piece[..<Int(count)]
        }
    }

    /// Bytes for the server.
    func take() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(unsafe BIO_ctrl_pending(output)))
        guard !bytes.isEmpty else { return [] }
        _ = unsafe BIO_read(output, &bytes, Int32(bytes.count))
        return bytes
    }

    func write(_ bytes: [UInt8]) { _ = unsafe SSL_write(tls, bytes, Int32(bytes.count)) }

    /// Sends close_notify.
    func end() { _ = unsafe SSL_shutdown(tls) }

    /// Sends a key update, TLS 1.3.
    func updateKey() {
        unsafe SSL_key_update(tls, SSL_KEY_UPDATE_REQUESTED)
        _ = unsafe SSL_do_handshake(tls)
    }

    /// Begins a new handshake, TLS 1.2.
    func renegotiate() {
        unsafe SSL_renegotiate(tls)
        _ = unsafe SSL_do_handshake(tls)
    }

    var isResumed: Bool { unsafe SSL_session_reused(tls) == 1 }

    var session: MemorySession? { unsafe SSL_get1_session(tls).map { unsafe MemorySession($0) } }

    var certificate: [UInt8] {
        guard let certificate = unsafe SSL_get0_peer_certificate(tls) else { return [] }
        var bytes = [UInt8](repeating: 0, count: max(0, Int(unsafe i2d_X509(certificate, nil))))
        unsafe bytes.withUnsafeMutableBufferPointer { bytes in
            var position = bytes.baseAddress
            _ = unsafe i2d_X509(certificate, &position)
        }
        return bytes
    }

    /// Bytes of early data that the session permits.
    var earlyData: UInt32 { unsafe SSL_SESSION_get_max_early_data(SSL_get_session(tls)) }

    /// The server has not taken the early data.
    var isEarlyDataRefused: Bool { unsafe SSL_get_early_data_status(tls) == SSL_EARLY_DATA_REJECTED }
}

/// A session of TLS, owned. libssl counts references atomically.
@safe final class MemorySession: @unchecked Sendable {
    let session: OpaquePointer
    init(_ session: OpaquePointer) { unsafe self.session = unsafe session }
    deinit { unsafe SSL_SESSION_free(session) }

    var isResumable: Bool { unsafe SSL_SESSION_is_resumable(session) == 1 }

    /// Has a client send early data, though the server has permitted none.
    func permitEarlyData() { unsafe SSL_SESSION_set_max_early_data(session, 1000) }
}
