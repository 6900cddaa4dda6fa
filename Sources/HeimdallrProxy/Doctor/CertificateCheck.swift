import Cryptography
import CurlTransport
import Heimdallr
import WireText

/// What a TLS handshake came to, in words.
struct CertificateCheck {
    let facts: ConnectionProbe.Facts
    /// Whom the certificate has to name.
    let host: String
    let hasCertificate: Bool
    let peer: TLSFault.Peer
    /// Seconds since 1970-01-01T00:00:00Z.
    var now = WallClock.now()

    /// How long before a certificate's end we begin to say so, in seconds.
    private static let notice: Int64 = 14 * 86_400

    var findings: [Finding] {
        guard let failure = facts.failure else {
            return [handshake] + [life].compactMap { $0 } + clientCertificate
        }
        return [fault(failure)]
    }

    // MARK: What is well

    private var handshake: Finding {
        var text = facts.version ?? "TLS"
        if let certificate = certificates.first { text += ", \(described(certificate))" }
        return .good("TLS", text, after: facts.securedAfter)
    }

    /// It ends soon.
    private var life: Finding? {
        guard let first = certificates.first, first.notAfter - now < Self.notice else { return nil }
        return .warning(
            "TLS", "the server's certificate ends on \(Self.day(first.notAfter))",
            "have whoever runs the server renew it before that")
    }

    private var clientCertificate: [Finding] {
        guard facts.failure == nil, facts.asksForCertificate || hasCertificate else { return [] }
        guard hasCertificate else {
            return [
                .warning(
                    "certificate", "the server asks for a client certificate, and goes on without one for now",
                    "if it refuses requests, name one in tls.cert_file, and its key in tls.key_file")
            ]
        }
        guard facts.asksForCertificate else {
            return [
                .warning(
                    "certificate", "the server did not ask for the client certificate that is configured",
                    "check that this is the address that wants it")
            ]
        }
        return [.good("certificate", "the server asks for ours, and takes it")]
    }

    // MARK: What is not

    private func fault(_ failure: TransportError) -> Finding {
        let first = certificates.first
        let shown = first.map { ": \(described($0))" } ?? ""
        switch facts.verification {
        case .expired:
            // One of those above it may be the one.
            let expired = certificates.first { $0.notAfter < now }
            let when = expired.map { " on \(Self.day($0.notAfter))" } ?? ""
            return .failed(
                "TLS", "the server's certificate has expired\(when)\(shown)", TLSFault.expired.advice(peer).behindColon)
        case .notYetValid:
            let when = first.map { " before \(Self.day($0.notBefore))" } ?? ""
            return .failed(
                "TLS", "the server's certificate is not valid yet\(when)\(shown)",
                TLSFault.notYetValid.advice(peer).behindColon)
        case .selfSigned:
            return .failed(
                "TLS", "the server's certificate is self-signed: no authority stands behind it\(shown)",
                "if it is meant to be, name the certificate's own file in tls.ca_file of \(peer.owner); else have the server "
                    + "show one that an authority has signed")
        case .unknownAuthority:
            let lacks = certificates.count == 1 ? "; the server shows no intermediate certificate" : ""
            return .failed(
                "TLS", "no authority that is trusted here has signed the server's certificate\(lacks)\(shown)",
                TLSFault.unknownAuthority.advice(peer).behindColon)
        case .other(let words):
            return .failed("TLS", "the server's certificate is not taken: \(words)\(shown)", advice(failure))
        case .good where failure.kind == .tlsCertificate:
            let names = first?.names ?? ""
            return .failed(
                "TLS",
                "the server's certificate is for another name than \(host)"
                    + (names.isEmpty ? shown : "; it is for \(ForeignText.printable(names))"),
                TLSFault.otherName.advice(peer).behindColon)
        case .good, nil: break
        }
        if failure.kind == .connectionTimedOut {
            return .failed(
                "TLS", "the port takes connections and then says nothing: no TLS handshake in time",
                "check that the port speaks TLS, that the server is not overloaded, and what stands in between")
        }
        let fault = TLSFault(words: failure.message)
        let what =
            fault == .plainPort
            ? "what answers there is no TLS: the port speaks plain text, and the address says https://"
            : FailureCause.text(failure)
        return .failed("TLS", what, advice(failure))
    }

    private func advice(_ failure: TransportError) -> String {
        TLSFault(words: failure.message).advice(peer).behindColon
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

extension String {
    /// Of a sentence that says what is wrong and, behind a colon, what to do: the latter.
    fileprivate var behindColon: String {
        firstRange(of: ": ").map { String(self[$0.upperBound...]) } ?? self
    }
}
