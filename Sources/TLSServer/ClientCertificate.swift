import CLibssl
import Cryptography
import Synchronization

/// Verification of client certificates by a server. Any thread.
public final class ClientVerification: Sendable {
    /// DER of the authorities whose client certificates are accepted.
    public let anchors: [[UInt8]]
    public let isRequired: Bool
    private let withdrawn = Atomic(false)

    public init(anchors: [[UInt8]], isRequired: Bool) {
        self.anchors = anchors
        self.isRequired = isRequired
    }

    /// Whether the authorities have changed since, so that a client verified by them has to be verified again.
    public var isWithdrawn: Bool { withdrawn.load(ordering: .relaxed) }

    public func withdraw() { withdrawn.store(true, ordering: .relaxed) }
}

/// A client's verified certificate.
public struct ClientCertificate: Sendable, Equatable {
    /// Subject by RFC 2253, such as `CN=worker,O=Example`; escaped outside ASCII. Empty if over 4096 bytes.
    public let subject: String
    /// Alternative names: `DNS:worker.example`, `URI:spiffe://example/worker`, `email:a@example`. Names of other kinds
    /// and names with bytes outside visible ASCII are left out.
    public let names: [String]
    /// First end of validity in the verified chain, in seconds since 1970. The certificate is good in this second too.
    public let end: Int64

    /// The subject, or the first alternative name if the subject is empty; at most 256 characters.
    public var name: String? { (subject.isEmpty ? names.first : subject).map { String($0.prefix(256)) } }

    private static let maxSubject = 4096

    /// Reads the client's certificate; `nil` if the client sent none, or if libssl did not verify it.
    /// SSL_get0_peer_certificate(3), SSL_get_verify_result(3).
    init?(of tls: OpaquePointer) {
        guard let certificate = unsafe SSL_get0_peer_certificate(tls), unsafe SSL_get_verify_result(tls) == X509_V_OK
        else { return nil }
        subject = unsafe Self.subject(of: certificate)
        names = unsafe Self.names(of: certificate)
        guard let end = unsafe Self.end(of: tls) else { return nil }
        self.end = end
        ERR_clear_error()
    }

    /// X509_get0_notAfter(3)
    private static func end(of tls: OpaquePointer) -> Int64? {
        var first: Int64?
        var index: Int32 = 0
        while let certificate = unsafe heimdallr_verified_certificate(tls, index) {
            guard let end = unsafe X509Certificate.seconds(X509_get0_notAfter(certificate)) else { return nil }
            first = min(first ?? end, end)
            index += 1
        }
        return first
    }

    /// X509_NAME_print_ex(3)
    private static func subject(of certificate: OpaquePointer) -> String {
        unsafe Libcrypto.text(limit: maxSubject) { output in
            let count = unsafe X509_NAME_print_ex(
                output, X509_get_subject_name(certificate), 0, heimdallr_name_format_rfc2253)
            return count > 0 && Int(count) <= maxSubject
        }
    }

    /// X509_get_ext_d2i(3)
    private static func names(of certificate: OpaquePointer) -> [String] {
        guard let list = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(list)
        defer { unsafe GENERAL_NAMES_free(names) }
        var found: [String] = []
        var index: Int32 = 0
        while true {
            var text: UnsafePointer<UInt8>?
            var count: Int32 = 0
            let kind = unsafe heimdallr_alternative_name(names, index, &text, &count)
            guard kind >= 0 else { return found }
            index += 1
            let bytes = unsafe UnsafeBufferPointer(start: text, count: max(0, Int(count)))
            guard kind > 0, !bytes.isEmpty, unsafe bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else { continue }
            let prefix = kind == GEN_DNS ? "DNS:" : kind == GEN_URI ? "URI:" : "email:"
            found.append(unsafe prefix + String(decoding: bytes, as: UTF8.self))
        }
    }
}
