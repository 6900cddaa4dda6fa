import Foundation
import TestSupport
import WireText

@testable import Cryptography

/// Issued certificates and keys as PEM files, for other programs.
struct CertificateFiles {
    private let directory: TemporaryDirectory
    /// All roots.
    let roots: String

    init(_ issued: IssuedCertificates) throws { try self.init(roots: issued.rootsPEM) }

    init(roots pem: String) throws {
        directory = try TemporaryDirectory()
        roots = try directory.write(pem, to: "roots.pem")
    }

    func path(of name: String) -> String { directory.path(of: name) }

    func write(_ text: String, to name: String) throws -> String { try directory.write(text, to: name) }

    /// The chain of a server, its own certificate first.
    func chain(_ server: ServerCertificate, _ name: String = "chain") throws -> String {
        try directory.write(server.chain.map { X509Certificate.pem($0) }.joined(), to: "\(name).pem")
    }

    func key(_ server: ServerCertificate, _ name: String = "key") throws -> String {
        let text = try server.key.exported().withSpan { Base64.encode([UInt8](copying: $0)) }
        return try directory.write(
            "-----BEGIN EC PRIVATE KEY-----\n\(text)\n-----END EC PRIVATE KEY-----\n", to: "\(name).key")
    }

    /// The judgement of `openssl verify -x509_strict` with the roots: `nil` if it accepts the chain, else what it says.
    /// - Parameter further: arguments such as `-verify_hostname`.
    func complaint(about chain: String, _ further: [String] = []) async throws -> String? {
        let child = try await ChildProcess.run(
            ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", roots, "-untrusted", chain]
                + further + [chain])
        return child.ending == .exited(0) ? nil : child.errors
    }
}
