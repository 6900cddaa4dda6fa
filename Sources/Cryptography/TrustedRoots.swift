import CLibcrypto

/// Trusted roots of a TLS client, to check our own certificates as a client would. Not for concurrent use.
@safe final class TrustedRoots {
    /// X509_STORE, made in `init`, freed in `deinit`.
    private let store: OpaquePointer

    init(_ roots: [X509Certificate]) throws(CryptographyError) {
        unsafe store = try unsafe Libcrypto.made("X509_STORE_new", X509_STORE_new())
        for root in roots {
            try Libcrypto.check("X509_STORE_add_cert", unsafe X509_STORE_add_cert(store, root.certificate))
        }
    }

    deinit { unsafe X509_STORE_free(store) }

    /// Whether a strict client with these roots accepts the certificate for a server at `host`. Does not check the
    /// validity period. X509_verify_cert(3), X509_VERIFY_PARAM_set_flags(3).
    func accept(_ leaf: X509Certificate, for host: CertificateHost) throws(CryptographyError) -> Bool {
        let context = try unsafe Libcrypto.made("X509_STORE_CTX_new", X509_STORE_CTX_new())
        defer { unsafe X509_STORE_CTX_free(context) }
        try Libcrypto.check("X509_STORE_CTX_init", unsafe X509_STORE_CTX_init(context, store, leaf.certificate, nil))
        // Owned by `context`.
        let parameters = unsafe X509_STORE_CTX_get0_param(context)
        let flags = X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE | X509_V_FLAG_NO_CHECK_TIME
        try Libcrypto.check(
            "X509_VERIFY_PARAM_set_flags", unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(flags)))
        try Libcrypto.check(
            "X509_VERIFY_PARAM_set_purpose",
            unsafe X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER))
        switch host {
        case .name(let name):
            try Libcrypto.check(
                "X509_VERIFY_PARAM_set1_host", unsafe X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count))
        case .address(let bytes):
            try Libcrypto.check(
                "X509_VERIFY_PARAM_set1_ip", unsafe X509_VERIFY_PARAM_set1_ip(parameters, bytes, bytes.count))
        }
        let code = unsafe X509_verify_cert(context)
        Libcrypto.forgetErrors()
        return code == 1
    }
}
