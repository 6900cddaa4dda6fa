import CurlTransport
import Foundation
import HTTPMessage
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor
import TestSupport
import Testing

/// Servers that TLS with fails, each in its own way.
struct BadTLSServer: Sendable, CustomTestStringConvertible {
    enum Kind: Sendable {
        /// `openssl s_server` with these arguments; CERT stands for a certificate's file, KEY for its key.
        case openssl([String], names: [String] = ["DNS:localhost"], isTrusted: Bool = true, days: Int = 30)
        /// Speaks first, or only when spoken to; then closes.
        case plain(String, isFirst: Bool)
        case cut(reset: Bool)
    }

    var name: String
    var kind: Kind
    var fault: TLSFault
    var testDescription: String { name }

    static let all: [BadTLSServer] = [
        .init(name: "plain HTTP", kind: .plain("HTTP/1.1 400 Bad Request\r\n\r\n", isFirst: false), fault: .plainPort),
        .init(name: "a mail server", kind: .plain("220 mail.example.com ESMTP\r\n", isFirst: true), fault: .plainPort),
        .init(name: "cut", kind: .cut(reset: false), fault: .cut),
        .init(name: "reset", kind: .cut(reset: true), fault: .cut),
        .init(name: "unknown authority", kind: .openssl([], isTrusted: false), fault: .unknownAuthority),
        .init(name: "another name", kind: .openssl([], names: ["DNS:other.test"]), fault: .otherName),
        .init(name: "expired", kind: .openssl([], days: -1), fault: .expired),
        .init(
            name: "wants a certificate, TLS 1.3", kind: .openssl(["-Verify", "1", "-verify_return_error"]),
            fault: .clientCertificateWanted),
        .init(
            name: "wants a certificate, TLS 1.2", kind: .openssl(["-Verify", "1", "-verify_return_error", "-tls1_2"]),
            fault: .handshakeRefused),
        // The alert of Go's servers, at least up to 1.2x, for a missing certificate.
        .init(
            name: "bad_certificate, as Go says it",
            kind: .plain("\u{15}\u{3}\u{3}\u{0}\u{2}\u{2}\u{2A}", isFirst: false), fault: .clientCertificateWanted),
        .init(
            name: "TLS 1.1 at most", kind: .openssl(["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]), fault: .oldProtocol),
        .init(
            name: "no cipher in common",
            kind: .openssl(["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]), fault: .handshakeRefused),
        .init(name: "HTTP/2 only", kind: .openssl(["-alpn", "h2"]), fault: .http2Only),
    ]

    /// Runs as long as the value that comes back lives.
    func start(_ authority: PrivateCA) async throws -> (port: UInt16, keeper: any Sendable) {
        switch kind {
        case .plain(let text, let isFirst):
            let listener = try RawListener()
            let serving = Task {
                while true {
                    let peer = try await listener.accept()
                    if !isFirst { _ = try await peer.read(count: 5) }
                    try await peer.send(text)
                    _ = try? await peer.readToEnd()
                }
            }
            return (listener.port, serving)
        case .cut(let reset):
            let listener = try RawListener()
            let serving = Task {
                while true {
                    let peer = try await listener.accept()
                    _ = try await peer.read(count: 5)
                    if reset { peer.resetOnClose() }
                    peer.close()
                }
            }
            return (listener.port, serving)
        case .openssl(let more, let names, let isTrusted, let days):
            let issuer = isTrusted ? authority : try await PrivateCA(commonName: "another")
            let certificate = try await issuer.server(names, days: days)
            let port = try freePort()
            let server = try ChildProcess(
                [
                    "openssl", "s_server", "-accept", "\(port)", "-www", "-cert", certificate.certificateFile, "-key",
                    certificate.keyFile,
                ] + more)
            try await eventually("s_server accepts") { server.output.contains("ACCEPT") }
            return (port, Running(server: server, certificate: certificate))
        }
    }

    private struct Running: Sendable {
        let server: ChildProcess
        let certificate: PrivateCA.Certificate
    }
}

@Suite("advice about TLS fits what is wrong with it", .stopsProxies, .timeLimit(.minutes(2)))
struct TLSAdviceTests {
    @Test(arguments: BadTLSServer.all)
    func `advice about an upstream's TLS fits what is wrong with it`(server: BadTLSServer) async throws {
        let authority = try await PrivateCA()
        let (port, keeper) = try await server.start(authority)
        let failures = Recorder<UpstreamFailure>()
        var observer = ProxyObserver()
        observer.upstreamFailed = { failures.append($0) }
        let proxy = try await ProxyInProcess(
            more: secureUpstream("tls.test", port, authority), observer: observer)
        let answer = try await proxy.request("GET", "http://tls.test/")
        #expect(answer.status == 502)
        let failure = try #require(failures.all.last)
        let advice = server.fault.advice(.upstream)
        #expect(TLSFault(words: failure.error.message) == server.fault, "\(failure.error.message)")
        #expect(failure.advice.lowercased() == advice.lowercased() + ".", "\(failure.advice) \(failure.error)")
        let cause = advice.firstRange(of: ": ").map { advice[..<$0.lowerBound] } ?? advice[...]
        #expect(
            answer.reason.lowercased().contains(cause.lowercased()),
            "the phrase says what the detail says: \(answer.reason)")
        #expect(answer.text.contains(failure.advice.replacing("\"", with: "\\\"")), "\(answer.text)")
        withExtendedLifetime(keeper) {}
    }

    @Test(arguments: BadTLSServer.all)
    func `advice about a token endpoint's TLS fits what is wrong with it`(server: BadTLSServer) async throws {
        let authority = try await PrivateCA()
        let (port, keeper) = try await server.start(authority)
        var options = PoolOptions()
        options.trustAnchors = .only(file: authority.certificateFile)
        let client = CurlHTTPClient(BufferedClient(options: options, loop: try EventLoop.start(name: "test")))
        do {
            _ = try await client.send(HeimdallrHTTPRequest(method: "POST", url: "https://localhost:\(port)/token"))
            Issue.record("there was an answer")
        } catch let error as HeimdallrHTTPClientError {
            guard case .tls(let words) = error else { throw TestFailure("\(error)") }
            #expect(TLSFault(words: words) == server.fault, "\(words)")
        }
        withExtendedLifetime(keeper) {}
    }

    @Test func `advice about TLS says what to write`() {
        let words: [TLSFault: [String]] = [
            .plainPort: ["speaks no TLS", "http://", "allow_plaintext", "port"], .unknownAuthority: ["tls.ca_file"],
            .expired: ["expired"], .clientCertificateWanted: ["tls.cert_file", "tls.key_file"],
            .clientCertificateRefused: ["tls.cert_file"], .handshakeRefused: ["tls.cert_file", "cipher"],
            .http2Only: ["http2: true"], .other: ["not known"], .oldProtocol: ["1.2"], .cut: ["cut"],
            .notYetValid: ["clock"],
        ]
        for (fault, words) in words {
            for peer in [TLSFault.Peer.authorizationServer, .upstream] {
                for word in words { #expect(fault.advice(peer).contains(word)) }
                if fault != .unknownAuthority { #expect(!fault.advice(peer).contains("ca_file")) }
            }
        }
        #expect(TLSFault.otherName.advice(.upstream).contains("tls.server_name"))
        // Clients have no such key.
        #expect(!TLSFault.otherName.advice(.authorizationServer).contains("server_name"))
    }

    @Test func `a certificate's words decide nothing but the advice`() {
        for name in ["certificate has expired", "wrong version number", "\u{0}"] {
            let words = "SSL: certificate subject name '\(name)' does not match target host name 'x' (curl 60)"
            #expect(TLSFault(words: words) == .otherName)
        }
        #expect(TLSFault(words: "") == .other)
    }
}
