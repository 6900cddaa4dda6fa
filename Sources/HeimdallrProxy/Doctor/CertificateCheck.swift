import Cryptography
import CurlTransport
import Heimdallr
import WireText

/// Describes the outcome of a TLS handshake.
struct CertificateCheck {
    let facts: ConnectionProbe.Facts
    /// The name that the server's certificate must have.
    let host: String
    let hasClientCertificate: Bool
    let peer: TLSFault.Peer

    /// A certificate that expires within this number of seconds causes a warning.
    private static let warningTime: Int64 = 14 * 86_400

    var findings: [Finding] {
        let certificates = facts.certificates.isEmpty ? [] : (try? X509Certificate.all(pem: facts.certificates)) ?? []
        if let failure = facts.failure { return [fault(failure, certificates)] }
        guard let first = certificates.first else { return [.good("TLS", facts.version ?? "TLS")] }
        var findings = [
            Finding.good("TLS", "\(facts.version ?? "TLS"), \(Self.described(first))", after: facts.securedAfter)
        ]
        if first.notAfter - WallClock.now() < Self.warningTime {
            let text = "the server's certificate ends on \(first.notAfter.day)"
            findings.append(.warning("TLS", text, "renew it at the server before that"))
        }
        switch (hasClientCertificate, facts.asksForCertificate) {
        case (false, false): break
        case (true, true): findings.append(.good("certificate", "the server requests our certificate, and accepts it"))
        case (false, true):
            let text = "the server requests a client certificate, but accepted a handshake without one"
            let advice = "if it refuses requests, name a certificate in tls.cert_file, and its key in tls.key_file"
            findings.append(.warning("certificate", text, advice))
        case (true, false):
            let text = "the server did not ask for the client certificate that is configured"
            findings.append(.warning("certificate", text, "check that the address is right"))
        }
        return findings
    }

    private func fault(_ failure: TransportError, _ certificates: [X509Certificate]) -> Finding {
        if failure.kind == .connectionTimedOut {
            return .failed(
                "TLS", "the port accepts connections and then sends nothing: no TLS handshake in time",
                "check that the port speaks TLS, that the server is not overloaded, and the firewalls in between")
        }
        let fault = TLSFault(words: failure.message)
        // A sentence of `TLSFault` has its advice after a colon.
        let parts = fault.advice(peer).split(separator: ": ", maxSplits: 1).map(String.init)
        var text = parts.count == 2 ? parts[0] : FailureCause.text(failure)
        var names = ""
        switch fault {
        case .expired:
            // The expired certificate may be that of an issuer.
            let expired = certificates.first { $0.notAfter < WallClock.now() }
            text += expired.map { " on \($0.notAfter.day)" } ?? ""
        case .notYetValid: text += certificates.first.map { " before \($0.notBefore.day)" } ?? ""
        case .unknownAuthority where certificates.count == 1:
            let isOwn = certificates[0].subject == certificates[0].issuer
            text += isOwn ? "; it is self-signed" : "; the server shows no intermediate certificate"
        case .otherName:
            names = certificates.first?.names ?? ""
            text += " than \(host)" + (names.isEmpty ? "" : "; it is for \(ForeignText.printable(names))")
        default: break
        }
        if names.isEmpty, let first = certificates.first { text += ": \(Self.described(first))" }
        return .failed("TLS", text, parts[parts.count - 1])
    }

    private static func described(_ certificate: X509Certificate) -> String {
        ForeignText.printable(
            "\(certificate.subject), issued by \(certificate.issuer), until \(certificate.notAfter.day)")
    }
}
