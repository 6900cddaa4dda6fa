import Foundation
import TestSupport
import Testing

@testable import Cryptography

@Suite(.timeLimit(.minutes(1))) struct `A certificate` {
    private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

    @Test("a certificate tells its subject, its end and its digest, as openssl does")
    func facts() async throws {
        let ca = try await PrivateCA(commonName: "a CA")
        let client = try await ca.client("billing")
        let certificates = try X509Certificate.all(pem: try bytes(client.certificateFile) + bytes(ca.certificateFile))
        #expect(certificates.count == 2)
        let certificate = try #require(certificates.first)
        #expect(certificate.subject == "CN=billing")
        #expect(certificate.issuer == "CN=a CA")
        let left = certificate.notAfter - Int64(Date().timeIntervalSince1970)
        #expect((89 * 86400...90 * 86400).contains(left))
        let output = try await ChildProcess.output(of: [
            "openssl", "x509", "-in", client.certificateFile, "-noout", "-fingerprint", "-sha256",
        ])
        let hex = try certificate.digest().map { String(format: "%02X", $0) }.joined(separator: ":")
        #expect(output.contains(hex))
        let key = try SigningKey(text: SecretBytes(try bytes(client.keyFile)))
        #expect(certificate.belongs(to: key))
        #expect(!certificates[1].belongs(to: key))
    }

    @Test("a certificate that is cut off, or is none, is refused")
    func refused() async throws {
        let ca = try await PrivateCA()
        let whole = try bytes(ca.certificateFile)
        let none = Array("no certificate".utf8)
        let damaged = Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8)
        for bad in [[], none, damaged, Array(whole.dropLast(40)), whole + damaged] {
            #expect(throws: CryptographyError.key(.notACertificate)) { try X509Certificate.all(pem: bad) }
        }
    }
}
