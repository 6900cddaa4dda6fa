import Cryptography
import CurlTransport
import Heimdallr
import WireText

/// The outcome of a TLS handshake, in words.
struct CertificateCheck {
    let facts: ConnectionProbe.Facts
    /// The name that the certificate must have.
    let host: String
    let hasCertificate: Bool
    let peer: TLSFault.Peer
    /// Seconds since 1970-01-01T00:00:00Z.
    var now = WallClock.now()

    /// Seconds before a certificate's end at which a warning begins.
    private static let notice: Int64 = 14 * 86_400

    var findings: [Finding] {
        if let failure = facts.failure { return [fault(failure)] }
        var text = facts.version ?? "TLS"
        if let first = certificates.first { text += ", \(described(first))" }
        return [.good("TLS", text, after: facts.securedAfter)] + ending + clientCertificate
    }

    private var ending: [Finding] {
        guard let first = certificates.first, first.notAfter - now < Self.notice else { return [] }
        return [
            .warning(
                "TLS", "the server's certificate ends on \(Self.day(first.notAfter))",
                "have whoever runs the server renew it before that")
        ]
    }

    private var clientCertificate: [Finding] {
        switch (hasCertificate, facts.asksForCertificate) {
        case (false, false): []
        case (true, true): [.good("certificate", "the server asks for ours, and takes it")]
        case (false, true):
            [
                .warning(
                    "certificate", "the server asks for a client certificate, and goes on without one for now",
                    "if it refuses requests, name one in tls.cert_file, and its key in tls.key_file")
            ]
        case (true, false):
            [
                .warning(
                    "certificate", "the server did not ask for the client certificate that is configured",
                    "check that this is the address that wants it")
            ]
        }
    }

    // MARK: Faults

    private func fault(_ failure: TransportError) -> Finding {
        let first = certificates.first
        let shown = first.map { ": \(described($0))" } ?? ""
        // A sentence of `TLSFault` has its advice after a colon.
        func failed(_ fault: TLSFault, text: String? = nil, detail: String = "", advice: String? = nil) -> Finding {
            let parts = fault.advice(peer).split(separator: ": ", maxSplits: 1).map(String.init)
            return .failed("TLS", text ?? parts[0] + detail, advice ?? parts[parts.count - 1])
        }
        switch facts.verification {
        case .expired:
            // The expired one may be a certificate above the server's.
            let when = certificates.first { $0.notAfter < now }.map { " on \(Self.day($0.notAfter))" } ?? ""
            return failed(.expired, detail: when + shown)
        case .notYetValid:
            let when = first.map { " before \(Self.day($0.notBefore))" } ?? ""
            return failed(.notYetValid, detail: when + shown)
        case .selfSigned:
            return failed(
                .other, text: "the server's certificate is self-signed: no authority stands behind it\(shown)",
                advice:
                    "if it is meant to be, name the certificate's own file in tls.ca_file of \(peer.owner); else have "
                    + "the server show one that an authority has signed")
        case .unknownAuthority:
            let lacks = certificates.count == 1 ? "; the server shows no intermediate certificate" : ""
            return failed(.unknownAuthority, detail: lacks + shown)
        case .other(let words):
            let text = "the server's certificate is not taken: \(words)\(shown)"
            return failed(TLSFault(words: failure.message), text: text)
        case .good where failure.kind == .tlsCertificate:
            let names = first?.names ?? ""
            let detail = names.isEmpty ? shown : "; it is for \(ForeignText.printable(names))"
            return failed(.otherName, detail: " than \(host)\(detail)")
        case .good, nil: break
        }
        if failure.kind == .connectionTimedOut {
            return failed(
                .other, text: "the port takes connections and then says nothing: no TLS handshake in time",
                advice: "check that the port speaks TLS, that the server is not overloaded, and what stands in between")
        }
        let fault = TLSFault(words: failure.message)
        let plain = "what answers there is no TLS: the port speaks plain text, and the address says https://"
        return failed(fault, text: fault == .plainPort ? plain : FailureCause.text(failure))
    }

    private var certificates: [X509Certificate] {
        facts.certificates.isEmpty ? [] : (try? X509Certificate.all(pem: facts.certificates)) ?? []
    }

    private func described(_ certificate: X509Certificate) -> String {
        ForeignText.printable(
            "\(certificate.subject), issued by \(certificate.issuer), until \(Self.day(certificate.notAfter))")
    }

    private static func day(_ seconds: Int64) -> String {
        String(RFC3339.text(Int(clamping: seconds)).prefix { $0 != "T" })
    }
}
