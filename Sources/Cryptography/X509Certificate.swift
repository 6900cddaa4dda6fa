import CLibcrypto
import Glibc
import WireText

/// A certificate from our files or of our authorities, to report, check or trust. Reading does not verify it.
/// Immutable, so safe on any thread.
@safe public final class X509Certificate: Sendable {
    /// X509, freed in `deinit`.
    package nonisolated(unsafe) let certificate: OpaquePointer
    /// RFC 2253, at most 256 characters.
    public let subject: String
    public let issuer: String
    /// End of validity, in seconds since 1970-01-01T00:00:00Z.
    public let notAfter: Int64
    /// Start of validity.
    public let notBefore: Int64

    /// Limit of certificates read from one file. Further certificates are ignored.
    private static let maxCertificates = 4096

    /// Returns the certificates of a PEM file, in the file's order. PEM_read_bio_X509(3).
    /// - Throws: `CryptographyError.key(.notACertificate)` when there is none, or one is damaged.
    public static func all(pem: [UInt8]) throws(CryptographyError) -> [X509Certificate] {
        var found: [OpaquePointer] = unsafe []
        unsafe SecretBytes(pem).withBIO(or: ()) { source in
            while unsafe found.count < maxCertificates {
                guard let one = unsafe PEM_read_bio_X509(source, nil, refusePassphrase, nil) else { break }
                unsafe found.append(one)
            }
        }
        // At the file's end, libcrypto reports that it found no further certificate. Any other error is a fault.
        let last = ERR_peek_last_error()
        Libcrypto.forgetErrors()
        // Each certificate gets an owner before a fault is thrown, so that none leaks.
        let read = unsafe found.map { one in
            Result { () throws(CryptographyError) in try unsafe X509Certificate(owning: one) }
        }
        var certificates: [X509Certificate] = []
        for one in read { certificates.append(try one.get()) }
        let isAtEnd = ERR_GET_REASON(last) == PEM_R_NO_START_LINE || certificates.count == maxCertificates
        guard !certificates.isEmpty, isAtEnd else { throw .key(.notACertificate) }
        return certificates
    }

    /// Returns a certificate as PEM (RFC 7468).
    public static func pem(_ der: [UInt8]) -> String {
        let text = Array(Base64.encode(der).utf8)
        let lines = stride(from: 0, to: text.count, by: 64).map {
            String(decoding: text[$0..<min($0 + 64, text.count)], as: UTF8.self) + "\n"
        }
        return "-----BEGIN CERTIFICATE-----\n\(lines.joined())-----END CERTIFICATE-----\n"
    }

    /// Reads DER. No bytes may follow the certificate. d2i_X509(3).
    /// - Throws: `CryptographyError.key(.notACertificate)`
    public convenience init(der: [UInt8]) throws(CryptographyError) {
        let parsed = unsafe Libcrypto.parse(der) { position, count -> OpaquePointer? in
            let start = unsafe position.pointee
            guard let parsed = unsafe d2i_X509(nil, position, count) else { return nil }
            guard unsafe position.pointee != start?.advanced(by: count) else { return unsafe parsed }
            unsafe X509_free(parsed)
            return nil
        }
        Libcrypto.forgetErrors()
        guard let parsed = unsafe parsed else { throw .key(.notACertificate) }
        try unsafe self.init(owning: parsed)
    }

    private init(owning certificate: OpaquePointer) throws(CryptographyError) {
        let end = unsafe Self.seconds(X509_get0_notAfter(certificate))
        let begin = unsafe Self.seconds(X509_get0_notBefore(certificate))
        guard let end, let begin else {
            unsafe X509_free(certificate)
            throw .key(.notACertificate)
        }
        unsafe self.certificate = unsafe certificate
        subject = unsafe Self.text(X509_get_subject_name(certificate))
        issuer = unsafe Self.text(X509_get_issuer_name(certificate))
        notAfter = end
        notBefore = begin
    }

    deinit { unsafe X509_free(certificate) }

    /// The subject alternative names in OpenSSL's form: `DNS:a.example, IP Address:127.0.0.1`. At most 256 characters,
    /// not necessarily printable. X509V3_EXT_print(3).
    public var names: String {
        let index = unsafe X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1)
        guard index >= 0, let found = unsafe X509_get_ext(certificate, index) else { return "" }
        defer { Libcrypto.forgetErrors() }
        return unsafe Libcrypto.text { unsafe X509V3_EXT_print($0, found, 0, 0) == 1 }
    }

    /// i2d_X509(3)
    public func der() throws(CryptographyError) -> [UInt8] {
        try unsafe Libcrypto.der("i2d_X509") { unsafe i2d_X509(certificate, $0) }
    }

    /// Returns the DER's SHA-256, for `x5t#S256` (RFC 7515 section 4.1.8) and `cnf` (RFC 8705 section 3.1).
    public func digest() throws(CryptographyError) -> [UInt8] {
        try unsafe Libcrypto.output("X509_digest", size: 32) {
            unsafe X509_digest(certificate, EVP_sha256(), $0, nil)
        }
    }

    /// Whether the key of `issuer` has signed this certificate. X509_verify(3)
    func isSigned(by issuer: X509Certificate) -> Bool {
        let code = unsafe X509_verify(certificate, X509_get0_pubkey(issuer.certificate))
        Libcrypto.forgetErrors()
        return code == 1
    }

    /// Whether this certificate names `host`: an exact name in lower case, or a numeric address.
    /// X509_check_host(3), X509_check_ip_asc(3).
    public func isFor(_ host: String) -> Bool {
        guard let known = try? CertificateHost(host) else { return false }
        let code: Int32 =
            if case .address = known { unsafe X509_check_ip_asc(certificate, host, 0) } else {
                unsafe X509_check_host(certificate, host, host.utf8.count, 0, nil)
            }
        Libcrypto.forgetErrors()
        return code == 1
    }

    /// Whether `key` is the private key of this certificate. X509_check_private_key(3)
    public func belongs(to key: SigningKey) -> Bool {
        let code = unsafe X509_check_private_key(certificate, key.key)
        Libcrypto.forgetErrors()
        return code == 1
    }

    /// X509_NAME_print_ex(3), which escapes unprintable characters.
    private static func text(_ name: OpaquePointer?) -> String {
        guard let name = unsafe name else { return "" }
        return unsafe Libcrypto.text { unsafe X509_NAME_print_ex($0, name, 0, hpx_name_format_rfc2253) >= 0 }
    }

    /// ASN1_TIME_to_tm(3), timegm(3).
    package static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Int64(unsafe timegm(&parts))
    }
}
