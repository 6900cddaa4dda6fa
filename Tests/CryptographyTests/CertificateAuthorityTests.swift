import Foundation
import TestSupport
import Testing
import WireText

@testable import Cryptography

@Suite(.timeLimit(.minutes(2))) struct `A certificate authority` {
    private static let names = ["api.listed.test", "xn--bcher-kva.test", "localhost", "with_underscore.test"]
    private static let addresses = ["127.0.0.1", "10.1.2.3", "::1", "2001:db8::7"]

    private func text(of certificate: [UInt8]) async throws -> String {
        try await ChildProcess.output(
            of: ["openssl", "x509", "-noout", "-text", "-nameopt", "RFC2253"],
            input: Array(X509Certificate.pem(certificate).utf8))
    }

    @Test func `an authority's certificates pass openssl's strict check for their host alone`() async throws {
        let issued = try CertificateAuthority.issue(for: Self.names + Self.addresses)
        #expect(issued.roots.count == 2)
        #expect(issued.leaves.count == 8)
        let files = try CertificateFiles(issued)
        for host in Self.names + Self.addresses {
            let chain = try files.chain(try #require(issued.leaves[host]))
            let check = Self.names.contains(host) ? "-verify_hostname" : "-verify_ip"
            #expect(try await files.complaint(about: chain, [check, host]) == nil)
            for (check, other) in [
                ("-verify_hostname", "unlisted.test"), ("-verify_hostname", "below.\(host)"),
                ("-verify_hostname", host == Self.names[0] ? Self.names[1] : Self.names[0]),
                ("-verify_ip", host == Self.addresses[0] ? Self.addresses[2] : Self.addresses[0]),
            ] {
                #expect(try await files.complaint(about: chain, [check, other])?.contains("mismatch") == true)
            }
        }
    }

    @Test func `an authority's certificates have the form that all programs accept`() async throws {
        let issued = try CertificateAuthority.issue(for: ["api.listed.test", "two.listed.test", "::1"])
        let root = try await text(of: issued.roots[0])
        for part in [
            "Version: 3 (0x2)", "Signature Algorithm: ecdsa-with-SHA256", "ASN1 OID: prime256v1",
            "Basic Constraints: critical\n                CA:TRUE, pathlen:0\n",
            "Key Usage: critical\n                Certificate Sign\n", "Subject Key Identifier",
            """
            Name Constraints: critical
                            Permitted:
                              DNS:api.listed.test
                              DNS:two.listed.test
                            Excluded:
                              IP:0.0.0.0/0.0.0.0
                              IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0

            """,
        ] { #expect(root.contains(part), "\(part) in \(root)") }
        for part in ["Authority Key", "Extended Key", "Alternative"] { #expect(!root.contains(part)) }

        let addressRoot = try await text(of: issued.roots[1])
        #expect(addressRoot.contains("Permitted:\n                  DNS:invalid\n    Signature"))
        #expect(addressRoot.contains("CA:TRUE, pathlen:0"))

        for (host, name, issuer) in [
            ("api.listed.test", "DNS:api.listed.test", root), ("::1", "IP Address:0:0:0:0:0:0:0:1", addressRoot),
        ] {
            let leaf = try await text(of: try #require(issued.leaves[host]).chain[0])
            for part in [
                "Version: 3 (0x2)", "Subject: \n", "ASN1 OID: prime256v1",
                "Key Usage: critical\n                Digital Signature\n",
                "Extended Key Usage: \n                TLS Web Server Authentication\n",
                "Subject Alternative Name: critical\n                \(name)\n",
            ] { #expect(leaf.contains(part), "\(part) in \(leaf)") }
            for part in ["Basic Constraints", "Subject Key", "Name Constraints"] { #expect(!leaf.contains(part)) }
            let subject = try #require(issuer.firstMatch(of: /Subject: (CN=heimdallr-proxy [\w-]{22})\n/)).1
            #expect(leaf.contains("Issuer: \(subject)\n"))
            let identifier = try #require(issuer.firstMatch(of: /Subject Key Identifier: \n *([0-9A-F:]{59})\n/)).1
            #expect(leaf.firstMatch(of: /Authority Key Identifier: \n *([0-9A-F:]{59})\n/)?.1 == identifier)
        }
    }

    @Test func `an authority never repeats a serial number, a name or a key`() async throws {
        var texts: [String] = []
        for _ in 0..<3 {
            let issued = try CertificateAuthority.issue(for: ["a.test", "b.test", "::1"])
            for certificate in issued.roots + issued.leaves.values.map({ $0.chain[0] }) {
                texts.append(try await text(of: certificate))
            }
        }
        let serials = try texts.map { try #require($0.firstMatch(of: /Serial Number:\n *([0-9a-f:]+)\n/)).1 }
        #expect(Set(serials).count == 15)
        #expect(serials.allSatisfy { (30...47).contains($0.count) })
        let keys = try texts.map { try #require($0.firstMatch(of: /pub:([0-9a-f:\s]+)ASN1/)).1 }
        #expect(Set(keys).count == 15)
        #expect(Set(texts.compactMap { $0.firstMatch(of: /Subject: (CN.*)/)?.1 }).count == 6)
    }

    @Test func `an authority's certificates are valid for 30 days and five minutes`() throws {
        let now = WallClock.now()
        let issued = try CertificateAuthority.issue(for: ["a.test"], now: now)
        #expect(issued.validity.notBefore == now - 300)
        #expect(issued.validity.notAfter == now + 30 * 86_400)
        // Both forms of times, and the day on which they change.
        for (now, lifetime) in [(0, 60), (2_524_607_999, 1), (2_524_608_400, 60), (4_102_444_800, 86_400)]
            as [(Int64, Int64)]
        {
            let issued = try CertificateAuthority.issue(for: ["a.test"], lifetime: lifetime, now: now)
            for der in try issued.roots + [#require(issued.leaves["a.test"]).chain[0]] {
                let certificate = try X509Certificate(der: der)
                #expect(certificate.notBefore == now - 300)
                #expect(certificate.notAfter == now + lifetime)
            }
        }
    }

    @Test func `an authority leaves no key that signs for another host`() async throws {
        let issued = try CertificateAuthority.issue(for: ["a.test", "b.test"])
        let files = try CertificateFiles(issued)
        let own = try #require(issued.leaves["a.test"])
        let (chain, key) = (try files.chain(own, "a"), try files.key(own, "a"))
        for host in ["b.test", "unlisted.test"] {
            let request = files.path(of: "request")
            try await ChildProcess.output(of: [
                "openssl", "req", "-new", "-key", key, "-subj", "/CN=\(host)", "-out", request,
            ])
            let extensions = try files.write(
                "subjectAltName=DNS:\(host)\nauthorityKeyIdentifier=none\n", to: "extensions")
            let forged = try await ChildProcess.output(of: [
                "openssl", "x509", "-req", "-in", request, "-CA", chain, "-CAkey", key, "-extfile", extensions,
                "-set_serial", "1",
            ])
            let file = try files.write(forged + String(contentsOfFile: chain, encoding: .utf8), to: "forged.pem")
            let complaint = try await files.complaint(about: file, ["-verify_hostname", host])
            #expect(complaint?.contains("invalid CA certificate") == true, "\(complaint ?? "accepted")")
        }
    }

    @Test func `an authority refuses a host that no certificate can name`() throws {
        let label = String(repeating: "a", count: 63)
        for host in [
            "", ".", "a.test.", ".a.test", "a..test", "*", "*.a.test", "a\0.test", "127.0.0.1\0.test", "bücher.test",
            "A.test", "a test", "a.test:443", "[::1]", "fe80::1%eth0", "a,b", "a/b", label + "a.test",
            [label, label, label, label].joined(separator: "."),
        ] {
            #expect(throws: CryptographyError.certificateHost(host)) {
                try CertificateAuthority.issue(for: ["good.test", host])
            }
        }
        let longest = [label, label, label, String(label.dropLast(2))].joined(separator: ".")
        #expect(longest.utf8.count == 253)
        #expect(try CertificateAuthority.issue(for: [longest]).leaves.count == 1)
        let told = CryptographyError.certificateHost("a\u{1B}[2J\n" + String(repeating: "b", count: 1000)).description
        #expect(told.contains(#""a?[2J?bbb"#))
        #expect(told.utf8.count < 500)
    }

    @Test func `an authority has a root only for listed kinds of hosts, and lists a host once`() throws {
        #expect(try CertificateAuthority.issue(for: []).roots.isEmpty)
        let names = try CertificateAuthority.issue(for: ["a.test", "a.test"])
        #expect(names.roots.count == 1)
        #expect(names.leaves.count == 1)
        #expect(try CertificateAuthority.issue(for: ["127.0.0.1"]).roots.count == 1)
    }

    @Test func `an authority issues certificates for 300 hosts`() async throws {
        let hosts = (0..<300).map { "host-\($0).listed.test" }
        let issued = try CertificateAuthority.issue(for: hosts)
        let files = try CertificateFiles(issued)
        var paths: [String] = []
        for host in hosts { paths.append(try files.chain(try #require(issued.leaves[host]), host)) }
        #expect(try await files.complaint(about: paths[0], Array(paths.dropFirst())) == nil)
        #expect(try await files.complaint(about: paths[299], ["-verify_hostname", hosts[299]]) == nil)
    }

    @Test func `Python trusts an authority through SSL_CERT_FILE, for its hosts alone`() async throws {
        let issued = try CertificateAuthority.issue(for: ["a.test", "b.test", "127.0.0.1", "::1"])
        let files = try CertificateFiles(issued)
        for (host, mismatch) in [("a.test", "Hostname mismatch"), ("127.0.0.1", "mismatch"), ("::1", "mismatch")] {
            let server = try #require(issued.leaves[host])
            let answers = try await ChildProcess.output(
                of: [
                    "python3", Repository.fixture("tls_names.py"), try files.chain(server), try files.key(server), host,
                    "b.test", "127.0.0.2",
                ], environment: ["SSL_CERT_FILE": files.roots]
            ).split(separator: "\n")
            #expect(answers.count == 3)
            #expect(answers.first == "page")
            #expect(answers.dropFirst().allSatisfy { $0.contains(mismatch) || $0.contains("mismatch") }, "\(answers)")
        }
    }

    @Test func `an authority leaves neither its key nor a nonce of its signatures in memory`() async throws {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("AuthorityProcess")
        let output = try await ChildProcess.output(of: [
            "python3", Repository.fixture("private_scalars.py"), program.path, "a.test", "b.test", "c.test",
            "127.0.0.1",
            "::1", "*.d.test",
        ])
        let found = try JSONDecoder().decode([String: Int].self, from: Data(output.utf8))
        // The search finds keys that are there.
        #expect(found["key of a leaf", default: 0] >= 5, "\(found)")
        #expect(found["key of a intermediate", default: 0] >= 1, "\(found)")
        #expect(found["key of a root"] == 0, "\(found)")
        #expect(found["nonce under a intermediate"] == 0, "\(found)")
        #expect(found["nonce under a root"] == 0, "\(found)")
        #expect(found["nonce under a leaf"] == 0, "\(found)")
    }
}
