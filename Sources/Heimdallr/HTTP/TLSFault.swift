/// Cause of a failed TLS handshake, by the messages of libcurl and OpenSSL, with advice. The messages can quote a
/// certificate, so a hostile server can choose the advice, and nothing else.
package enum TLSFault: Sendable, Equatable, CaseIterable {
    /// The peer does not speak TLS.
    case plainPort
    /// No authority that is trusted here has signed the certificate.
    case unknownAuthority
    /// The certificate's time is over.
    case expired
    /// The certificate's time has not begun.
    case notYetValid
    /// The certificate is for another host name.
    case otherName
    /// The certificate or its key is too weak.
    case weakCertificate
    /// The server wants a client certificate, and got none.
    case clientCertificateWanted
    /// The server does not take our client certificate.
    case clientCertificateRefused
    /// The server broke the handshake off and did not say why.
    case handshakeRefused
    /// The server speaks no TLS version that is taken here.
    case oldProtocol
    /// The connection ended within the handshake.
    case cut
    /// A certificate or key file of ours can't be used.
    case unusableFile
    /// None of these signs was found.
    case other

    /// The peer's role. Each role is configured in a different place, so the advice differs.
    package enum Peer: Sendable {
        /// A server that gives tokens.
        case authorizationServer
        /// A server that programs' requests are forwarded to.
        case upstream

        /// Section of the configuration with the `tls` for this peer.
        package var owner: String { self == .upstream ? "the upstream" : "the client" }
    }

    /// - Parameter words: as `HeimdallrHTTPClientError.tls` has them.
    package init(words: String) {
        let words = words.lowercased()
        self = Self.signs.first { $0.signs.contains { words.contains($0) } }?.fault ?? .other
    }

    /// In this order: the first two quote what the peer's certificate says.
    private static let signs: [(fault: TLSFault, signs: [String])] = [
        (
            .otherName,
            ["ssl: certificate subject name", "ssl: no alternative certificate", "does not match target host"]
        ),
        (.expired, ["certificate has expired"]), (.notYetValid, ["certificate is not yet valid"]),
        (
            .unknownAuthority,
            [
                "issuer certificate", "self-signed certificate", "self signed certificate",
                "verify the first certificate",
            ]
        ),
        (.weakCertificate, ["too weak", "key too small"]),
        (.clientCertificateWanted, ["alert certificate required"]),
        (
            .clientCertificateRefused,
            [
                "alert unknown ca", "alert bad certificate", "alert certificate ", "alert unsupported certificate",
                "alert access denied", "alert decrypt error",
            ]
        ),
        (.otherName, ["unrecognized name"]),
        (
            .oldProtocol,
            [
                "alert protocol version", "unsupported protocol", "legacy sigalg", "no protocols available",
                "version too low",
            ]
        ),
        (.plainPort, ["wrong version number", "packet length too long", "unknown protocol", "http request"]),
        (.handshakeRefused, ["alert handshake failure", "alert insufficient security", "no shared cipher"]),
        (
            .unusableFile,
            [
                "error setting certificate", "could not load pem", "private key", "verify locations",
                "ca certificate file",
            ]
        ),
        (.cut, ["ssl_error_syscall", "unexpected eof", "connection reset", "connection was reset", "broken pipe"]),
    ]

    /// The fault and, after a colon, the remedy: a fixed sentence without a capital letter and a full stop.
    package func advice(_ peer: Peer) -> String {
        switch self {
        case .plainPort:
            "the port speaks no TLS: write the port that does, or http:// with `allow_plaintext: true` where plain text is "
                + "meant"
        case .unknownAuthority:
            "no authority that is trusted here has signed the server's certificate: if it is one of your own, name its "
                + "file in tls.ca_file of \(peer.owner)"
        case .expired: "the server's certificate has expired: renew it there, or set this machine's clock"
        case .notYetValid: "the server's certificate is not valid yet: check this machine's clock"
        case .otherName:
            switch peer {
            case .authorizationServer:
                "the server's certificate is for another name: write the name that it has in the address"
            case .upstream:
                "the server's certificate is for another name: write that name in `url`, or as tls.server_name"
            }
        case .weakCertificate: "the server's certificate or key is too weak to be trusted: it needs a new one"
        case .clientCertificateWanted:
            "the server wants a client certificate: name it in tls.cert_file, and its key in tls.key_file"
        case .clientCertificateRefused:
            "the server does not take our client certificate: check tls.cert_file and tls.key_file, and which authority it "
                + "wants them from"
        case .handshakeRefused:
            "the server broke the handshake off: if it wants a client certificate, name it in tls.cert_file, and its key in "
                + "tls.key_file; else it has no TLS version or cipher that is taken here"
        case .oldProtocol: "the server speaks no TLS as new as 1.2: it has to be brought up to date"
        case .cut:
            "the connection was cut within the handshake: check that the port speaks TLS, and what stands in between"
        case .unusableFile: "a file of ours can't be used: check ca_file, cert_file and key_file under `tls`"
        case .other:
            "check the certificate of the server; if an authority of your own has signed it, name that one's file in "
                + "tls.ca_file of \(peer.owner)"
        }
    }
}
