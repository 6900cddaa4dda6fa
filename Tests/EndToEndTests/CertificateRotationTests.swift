import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("a pair that tokens are bound to is rotated", .timeLimit(.minutes(3)))
struct CertificateRotationTests {
    /// The certificate that nginx was shown, and the token, which names the one that it was asked for with.
    private struct Seen: Hashable {
        var certificate: String
        var token: String
    }

    /// Sends requests through the proxy, and counts the answers.
    private final class Asker: Sendable {
        private let proxy: RunningProxy
        private let counts = Mutex<[Seen: Int]>([:])
        var seen: [Seen: Int] { counts.withLock { $0 } }

        init(_ proxy: RunningProxy) { self.proxy = proxy }

        func ask() async throws -> Seen {
            let seen = try CertificateRotationTests.seen(try await proxy.get("http://api.test/"))
            counts.withLock { $0[seen, default: 0] += 1 }
            return seen
        }
    }

    private static func seen(_ response: RawResponse) throws -> Seen {
        guard response.status == 200, let match = response.text.firstMatch(of: /^(\w+) Bearer (\w+)$/) else {
            throw TestFailure("\(response.status) \(response.text)")
        }
        return Seen(certificate: String(match.1), token: String(match.2))
    }

    @Test(arguments: [false, true])
    func `no request carries the new certificate and the old token, or the other way round`(http2: Bool) async throws {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(), clientCA: authority.certificateFile,
            locations: #"""
                location /token {
                    default_type application/json;
                    return 200 '{"access_token":"$ssl_client_fingerprint","token_type":"Bearer","expires_in":3600}';
                }
                location / { return 200 "$ssl_client_fingerprint $http_authorization"; }
                """#)
        let folder = try TemporaryDirectory()
        func put(_ pair: PrivateCA.Certificate) throws {
            for (file, name) in [(pair.keyFile, "key.pem"), (pair.certificateFile, "cert.pem")] {
                let text = try String(contentsOfFile: file, encoding: .utf8)
                let next = try folder.write(text, to: "next")
                try #require(unsafe rename(next, folder.path(of: name)) == 0)
            }
        }
        try put(try await authority.client("client0"))
        // The upstream's files are others than the client's, but for the pair.
        let anchors = try folder.write(try String(contentsOfFile: authority.certificateFile, encoding: .utf8), to: "ca")
        let url = "https://localhost:\(nginx.httpsPort)"
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(url)/token",
                client: """
                    tls: {ca_file: \(authority.certificateFile), cert_file: \(folder.path)/cert.pem, key_file: \(folder.path)/key.pem}
                    certificate_bound: true
                    """,
                upstreams: ProxyConfiguration.upstream(url: url, "tls: {ca_file: \(anchors)}\nhttp2: \(http2)")))
        let asker = Asker(proxy)
        var last = try await asker.ask()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { while !Task.isCancelled { _ = try await asker.ask() } }
            }
            for number in 1...4 {
                try put(try await authority.client("client\(number)"))
                let former = last
                last = try await eventually("the next pair and its token") {
                    let seen = try await asker.ask()
                    return seen.certificate == former.certificate ? nil : seen
                }
            }
            group.cancelAll()
            try await group.waitForAll()
        }
        let seen = asker.seen
        #expect(Set(seen.keys.map(\.certificate)).count == 5)
        #expect(seen.keys.filter { $0.certificate != $0.token } == [], "\(seen)\n\(proxy.log)")
    }
}
