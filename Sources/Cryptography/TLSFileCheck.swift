import CLibcrypto

/// Checks of PEM files for TLS, by the library that will use them. Callers put the file's name in front of a fault.
public enum TLSFileCheck {
    /// - Parameter pem: PEM of trust anchors.
    /// - Returns: the fault; `nil` for none.
    public static func fault(anchors pem: SecretBytes) -> String? {
        var count = 0
        unsafe forEachCertificate(in: pem) { _ in count += 1 }
        return count > 0 ? nil : "it holds no certificate that can be read"
    }

    /// - Parameters:
    ///   - certificate: PEM that begins with the client's certificate.
    ///   - key: PEM of the certificate's key.
    /// - Returns: the fault; `nil` for none.
    public static func fault(certificate: SecretBytes, key: SecretBytes) -> String? {
        let noMemory = "there is no memory to read it"
        return unsafe certificate.withBIO(or: noMemory) { certificates in
            unsafe key.withBIO(or: noMemory) { keys in
                defer { ERR_clear_error() }
                guard let certificate = unsafe PEM_read_bio_X509(certificates, nil, refusePassphrase, nil) else {
                    return "the certificate can't be read"
                }
                defer { unsafe X509_free(certificate) }
                guard let key = unsafe PEM_read_bio_PrivateKey(keys, nil, refusePassphrase, nil) else {
                    return "the key can't be read: write it in PEM without a passphrase"
                }
                defer { unsafe EVP_PKEY_free(key) }
                return unsafe X509_check_private_key(certificate, key) == 1
                    ? nil : "certificate and key don't belong together"
            }
        }
    }

    /// Returns the end times of the certificates in `pem`, in order and in seconds since 1970. Leaves out unreadable
    /// certificates and other content. X509_get0_notAfter(3).
    public static func ends(of pem: SecretBytes) -> [Int64] {
        var ends: [Int64] = []
        unsafe forEachCertificate(in: pem) {
            if let end = unsafe X509Certificate.seconds(X509_get0_notAfter($0)) { ends.append(end) }
        }
        return ends
    }

    private static func forEachCertificate(in pem: SecretBytes, _ body: (OpaquePointer) -> Void) {
        unsafe pem.withBIO(or: ()) { bio in
            defer { ERR_clear_error() }
            while let certificate = unsafe PEM_read_bio_X509(bio, nil, refusePassphrase, nil) {
                unsafe body(certificate)
                unsafe X509_free(certificate)
            }
        }
    }
}
