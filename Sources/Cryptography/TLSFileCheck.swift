import CLibcrypto

/// Whether PEM files of TLS can be used, by the library that will. Sentences stand behind the file's name and a colon.
public enum TLSFileCheck {
    /// - Parameter pem: what should be trust anchors.
    /// - Returns: what is wrong; `nil`: nothing.
    public static func fault(anchors pem: SecretBytes) -> String? {
        unsafe withBIO(pem) { bio in
            defer { ERR_clear_error() }
            var count = 0
            while let certificate = unsafe PEM_read_bio_X509(bio, nil, refusePassphrase, nil) {
                unsafe X509_free(certificate)
                count += 1
            }
            return count > 0 ? nil : "it holds no certificate that can be read"
        }
    }

    /// - Parameters:
    ///   - certificate: what should begin with the client's own.
    ///   - key: what should be its key.
    /// - Returns: what is wrong; `nil`: nothing.
    public static func fault(certificate: SecretBytes, key: SecretBytes) -> String? {
        unsafe withBIO(certificate) { certificates in
            unsafe withBIO(key) { keys in
                defer { ERR_clear_error() }
                guard let certificate = unsafe PEM_read_bio_X509(certificates, nil, refusePassphrase, nil) else {
                    return "the certificate can't be read"
                }
                defer { unsafe X509_free(certificate) }
                guard let key = unsafe PEM_read_bio_PrivateKey(keys, nil, refusePassphrase, nil) else {
                    return "the key can't be read; one with a passphrase is not taken"
                }
                defer { unsafe EVP_PKEY_free(key) }
                return unsafe X509_check_private_key(certificate, key) == 1
                    ? nil : "certificate and key don't belong together"
            }
        }
    }

    /// When its certificates end, in their order and in seconds since 1970; those that can't be read, and what else the
    /// file holds, are left out. X509_get0_notAfter(3).
    public static func ends(of pem: SecretBytes) -> [Int64] {
        var ends: [Int64] = []
        _ = unsafe withBIO(pem) { bio in
            defer { ERR_clear_error() }
            while let certificate = unsafe PEM_read_bio_X509(bio, nil, refusePassphrase, nil) {
                defer { unsafe X509_free(certificate) }
                if let end = unsafe X509Certificate.seconds(X509_get0_notAfter(certificate)) { ends.append(end) }
            }
            return nil
        }
        return ends
    }

    private static func withBIO(_ pem: SecretBytes, _ body: (OpaquePointer) -> String?) -> String? {
        pem.withSpan { span in
            unsafe span.withUnsafeBufferPointer { buffer in
                guard let bio = unsafe BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count)) else {
                    return "there is no memory to read it"
                }
                defer { unsafe BIO_free(bio) }
                return unsafe body(bio)
            }
        }
    }
}

/// Otherwise it would be asked for at the terminal.
private func refusePassphrase(
    _ room: UnsafeMutablePointer<CChar>?, _ size: Int32, _ isWriting: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 { 0 }
