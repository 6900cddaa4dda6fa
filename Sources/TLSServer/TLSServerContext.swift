import CLibssl
import Cryptography

/// A certificate and its key, for TLS connections to one server name: TLS 1.2 and 1.3, without renegotiation,
/// compression and early data. Immutable, so safe on any thread.
@safe public final class TLSServerContext: Sendable {
    /// SSL_CTX, released in `deinit`. Connections hold their own references.
    nonisolated(unsafe) private let context: OpaquePointer
    private let session: [UInt8]
    /// Verification of client certificates; `nil` requests none.
    public let clients: ClientVerification?

    /// - Parameters:
    ///   - certificates: DER of the server's own certificate, then of its chain of issuers.
    ///   - key: key of the first certificate.
    ///   - session: identifies the authority, host and listener. A session is resumed only in a context with the same
    ///     `session`.
    ///   - clients: verification of client certificates; `nil` requests none. With it, no session is resumed.
    /// - Throws: `CryptographyError`, also when the key does not fit the certificate.
    public init(
        certificates: [[UInt8]], key: SigningKey, session: [UInt8], clients: ClientVerification? = nil
    ) throws(CryptographyError) {
        self.session = try Digest.sha256(session)
        self.clients = clients
        unsafe context = try Self.make(certificates, key, clients)
    }

    deinit { unsafe SSL_CTX_free(context) }

    private static func make(
        _ certificates: [[UInt8]], _ key: SigningKey, _ clients: ClientVerification?
    ) throws(CryptographyError) -> OpaquePointer {
        let context = try unsafe Libssl.newContext()
        do throws(CryptographyError) {
            try unsafe fill(context, certificates, key)
            if let clients { try unsafe verify(clients, context) }
        } catch {
            unsafe SSL_CTX_free(context)
            throw error
        }
        return unsafe context
    }

    /// SSL_CTX_use_certificate(3)
    private static func fill(
        _ context: OpaquePointer, _ certificates: [[UInt8]], _ key: SigningKey
    ) throws(CryptographyError) {
        guard let own = certificates.first else { throw .key(.notACertificate) }
        try Libssl.check("SSL_CTX_use_certificate_ASN1") {
            unsafe SSL_CTX_use_certificate_ASN1(context, Int32(clamping: own.count), own)
        }
        for issuer in certificates.dropFirst() {
            let certificate = try X509Certificate(der: issuer)
            try Libssl.check("SSL_CTX_add1_chain_cert") {
                unsafe heimdallr_add_chain_certificate(context, certificate.certificate)
            }
        }
        try unsafe key.withUnsafeKey { key throws(CryptographyError) in
            try Libssl.check("SSL_CTX_use_PrivateKey") { unsafe SSL_CTX_use_PrivateKey(context, key) }
        }
        try Libssl.check("SSL_CTX_check_private_key") { unsafe SSL_CTX_check_private_key(context) }
    }

    /// SSL_CTX_set_verify(3), SSL_CTX_add_client_CA(3), X509_STORE_add_cert(3)
    private static func verify(_ clients: ClientVerification, _ context: OpaquePointer) throws(CryptographyError) {
        unsafe SSL_CTX_set_verify(
            context, SSL_VERIFY_PEER | (clients.isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
        for anchor in clients.anchors {
            let certificate = try X509Certificate(der: anchor)
            try Libssl.check("X509_STORE_add_cert") {
                unsafe X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate.certificate)
            }
            try Libssl.check("SSL_CTX_add_client_CA") {
                unsafe SSL_CTX_add_client_CA(context, certificate.certificate)
            }
        }
    }

    /// Makes a connection, whose ClientHello is being read, use this context. SSL_set_SSL_CTX(3) sets the certificate,
    /// but not the session ID context and the verification.
    func serve(_ tls: OpaquePointer) -> Bool {
        guard unsafe SSL_set_SSL_CTX(tls, context) != nil else { return false }
        // A resumed session does not verify the client again: it would outlive the client's certificate.
        if clients != nil, unsafe heimdallr_forgo_tickets(tls) != 1 { return false }
        unsafe SSL_set_verify(tls, SSL_CTX_get_verify_mode(context), nil)
        return unsafe SSL_set_session_id_context(tls, session, UInt32(session.count)) == 1
    }
}
