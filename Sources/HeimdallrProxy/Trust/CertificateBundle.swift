import Cryptography
import CurlTransport
import FileSystem
import WireText

/// Certificates in order, without duplicates. Other content of their files, such as private keys, is dropped.
struct CertificateBundle: Sendable, Equatable {
    /// Certificates in DER, each of them valid X.509.
    private(set) var certificates: [[UInt8]] = []
    private var known: Set<[UInt8]> = []

    /// Maximum size of a file in bytes. A system's bundle has a few hundred KB.
    private static let limit = 16 << 20
    private static let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")

    /// Path of the system's bundle: libcurl's, else the first readable file of the usual paths; `nil` if there is none.
    static let systemPath: String? = {
        let usual = [
            "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
            "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
        ]
        return SystemTrust.current.bundle ?? usual.first(where: FileSystem.isReadable)
    }()

    /// Adds the certificates of a PEM file, or of all files in a folder. Skips damaged certificates. Blocks.
    mutating func add(at path: String) {
        guard let status = FileStatus(of: path) else { return }
        let files = status.kind == .folder ? FileSystem.names(in: path).sorted().map { "\(path)/\($0)" } : [path]
        for file in files where FileStatus(of: file)?.kind == .regular {
            if let bytes = try? FileSystem.read(file, limit: Self.limit) { add(pem: bytes) }
        }
    }

    /// Adds the certificates of a PEM text. RFC 7468.
    mutating func add(pem bytes: [UInt8]) {
        var lines: [UInt8]?
        for line in bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let line = line.prefix(through: line.lastIndex { !ASCII.isBlank($0) } ?? line.startIndex)
            if line.elementsEqual(Self.begin.utf8) {
                lines = []
            } else if line.elementsEqual(Self.end.utf8) {
                if let found = lines, let certificate = Base64.decode(found, as: .padded) { add(certificate) }
                lines = nil
            } else {
                lines?.append(contentsOf: line)
            }
        }
    }

    mutating func add(_ other: CertificateBundle) {
        for certificate in other.certificates { insert(certificate) }
    }

    var pem: [UInt8] { certificates.flatMap { X509Certificate.pem($0).utf8 } }

    private mutating func add(_ certificate: [UInt8]) {
        // Some programs refuse a whole file because of one unreadable certificate.
        if (try? X509Certificate(der: certificate)) != nil { insert(certificate) }
    }

    private mutating func insert(_ certificate: [UInt8]) {
        if known.insert(certificate).inserted { certificates.append(certificate) }
    }
}
