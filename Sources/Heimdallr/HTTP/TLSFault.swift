/// Cause of a failed TLS handshake, found in the messages of libcurl and OpenSSL, with advice. The messages may quote a
/// certificate, so a hostile server can influence which advice is given, and nothing else.
package enum TLSFault: Sendable, Equatable, CaseIterable {
    /// The peer does not speak TLS.
    case plainPort
    /// No trusted CA has signed the certificate.
    case unknownAuthority
    /// The certificate has expired.
    case expired
    /// The certificate is not valid yet.
    case notYetValid
    /// The certificate is for another host name.
    case otherName
    /// The certificate or its key is too weak.
    case weakCertificate
    /// The server requires a client certificate, and received none.
    case clientCertificateWanted
    /// The server does not accept our client certificate.
    case clientCertificateRefused
    /// The server ended the handshake without a clear reason.
    case handshakeRefused
    /// The server speaks HTTP/2 only, and we offered HTTP/1.1 (ALPN, RFC 7301).
    case http2Only
    /// The server supports no TLS version that is accepted here.
    case oldProtocol
    /// The connection ended during the handshake.
    case cut
    /// One of our own certificate or key files can't be used.
    case unusableFile
    /// The message contains no known phrase.
    case other

    /// The peer's role. Each role is configured in a different place, so the advice differs.
    package enum Peer: Sendable {
        /// A server that issues tokens.
        case authorizationServer
        /// A server to which programs' requests are forwarded.
        case upstream

        /// Section of the configuration that has the `tls` settings for this peer.
        package var owner: String { self == .upstream ? "the upstream" : "the client" }
    }

    /// - Parameter words: the text of `HeimdallrHTTPClientError.tls`.
    package init(words: String) {
        let words = words.lowercased()
        self = Self.signs.first { $0.phrases.contains { words.contains($0) } }?.fault ?? .other
    }

    /// Phrases in messages, in order of precedence: a message with an early phrase may quote a certificate with a later
    /// phrase.
    private static let signs: [(fault: TLSFault, phrases: [String])] = [
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
        (.clientCertificateWanted, ["alert certificate required", "no client certificate was sent"]),
        (
            .clientCertificateRefused,
            [
                "alert unknown ca", "alert bad certificate", "alert certificate ", "alert unsupported certificate",
                "alert access denied", "alert decrypt error",
            ]
        ),
        (.otherName, ["unrecognized name"]), (.http2Only, ["alert no application protocol"]),
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

    /// Returns the fault and its remedy as fixed text, without a capital letter at the start or a full stop at the end.
    package func advice(_ peer: Peer) -> String {
        switch self {
        case .plainPort:
            "the port speaks no TLS: write the port that does, or http:// with `allow_plaintext: true` if plain text "
                + "is intended"
        case .unknownAuthority:
            "no authority that is trusted here has signed the server's certificate: if your own CA has signed it, name "
                + "the CA's file in tls.ca_file of \(peer.owner), or for several servers in the top-level tls.ca_file"
        case .expired: "the server's certificate has expired: renew it there, or set this machine's clock"
        case .notYetValid: "the server's certificate is not valid yet: check this machine's clock"
        case .otherName:
            switch peer {
            case .authorizationServer:
                "the server's certificate is for another name: use the certificate's name in the address"
            case .upstream:
                "the server's certificate is for another name: write that name in `url`, or as tls.server_name"
            }
        case .weakCertificate:
            "the server's certificate or key is too weak to be trusted: have the server's operator make a new one"
        case .clientCertificateWanted:
            "the server requires a client certificate: name it in tls.cert_file, and its key in tls.key_file"
        case .clientCertificateRefused:
            "the server does not accept our client certificate: check tls.cert_file and tls.key_file, and which CA the "
                + "server trusts"
        case .handshakeRefused:
            "the server ended the handshake: if it requires a client certificate, name it in tls.cert_file and its key "
                + "in tls.key_file; otherwise it supports no TLS version or cipher that is accepted here"
        case .http2Only: Self.http2Advice(peer, isSecure: true)
        case .oldProtocol:
            "the server supports neither TLS 1.2 nor a later version: have the server's operator update it"
        case .cut:
            "the connection was cut in the handshake: check that the port speaks TLS, and any firewall on the way"
        case .unusableFile: "a configured file can't be used: check ca_file, cert_file and key_file under `tls`"
        case .other:
            "the handshake failed for a reason that is not known here: ask the server's operator, and look at its log"
        }
    }

    /// Returns the two parts of `advice`.
    package func parts(_ peer: Peer) -> (fault: String, remedy: String) { Self.parts(of: advice(peer)) }

    package static func parts(of advice: String) -> (fault: String, remedy: String) {
        guard let colon = advice.firstRange(of: ": ") else { return (advice, advice) }
        return (String(advice[..<colon.lowerBound]), String(advice[colon.upperBound...]))
    }

    /// Returns the fault of a server that speaks HTTP/2 only, and its remedy.
    package static func http2Advice(_ peer: Peer, isSecure: Bool) -> String {
        "the server speaks HTTP/2 only: set `http2: \(isSecure ? "true" : "prior-knowledge")` at \(peer.owner)"
    }
}
