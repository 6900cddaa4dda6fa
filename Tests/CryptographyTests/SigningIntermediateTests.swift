import Foundation
import TestSupport
import Testing
import WireText

@testable import Cryptography

@Suite(.timeLimit(.minutes(2))) struct `A signing intermediate` {
    private func text(of certificate: [UInt8]) async throws -> String {
        try await ChildProcess.output(
            of: ["openssl", "x509", "-noout", "-text", "-nameopt", "RFC2253"],
            input: Array(X509Certificate.pem(certificate).utf8))
    }

    @Test func `an intermediate signs on demand for its domains and the names below them`() async throws {
        let intermediate = try SigningIntermediate(for: ["example.com", "other.test"])
        let files = try CertificateFiles(roots: intermediate.rootPEM)
        for host in ["example.com", "a.example.com", "b.c.other.test", "xn--bcher-kva.example.com"] {
            #expect(intermediate.domains.covers(host))
            let chain = try files.chain(try intermediate.certificate(for: host))
            #expect(try await files.complaint(about: chain, ["-verify_hostname", host]) == nil)
            #expect(try await files.complaint(about: chain, ["-verify_hostname", "z.example.com"]) != nil)
        }
        for host in ["com", "notexample.com", "example.com.test", "test", "listed.test"] {
            #expect(!intermediate.domains.covers(host))
            #expect(throws: CryptographyError.uncoveredHost(host)) { try intermediate.certificate(for: host) }
        }
        for host in ["", ".example.com", "*.example.com", "a\0.example.com", "A.example.com"] {
            #expect(throws: CryptographyError.certificateHost(host)) { try intermediate.certificate(for: host) }
        }
        #expect(throws: CryptographyError.uncoveredHost("127.0.0.1")) { try intermediate.certificate(for: "127.0.0.1") }
    }

    @Test func `an intermediate's certificates have the form that all programs accept`() async throws {
        let intermediate = try SigningIntermediate(for: ["example.com", "other.test"])
        let chain = try intermediate.certificate(for: "a.example.com").chain
        #expect(chain.count == 2)
        let (root, middle, leaf) = (
            try await text(of: intermediate.root), try await text(of: chain[1]), try await text(of: chain[0])
        )
        for (certificate, pathLength) in [(root, 1), (middle, 0)] {
            for part in [
                "Basic Constraints: critical\n                CA:TRUE, pathlen:\(pathLength)\n",
                "Key Usage: critical\n                Certificate Sign\n", "Subject Key Identifier",
                """
                Name Constraints: critical
                                Permitted:
                                  email:invalid
                                  URI:invalid
                                  DNS:example.com
                                  DNS:other.test
                                Excluded:
                                  IP:0.0.0.0/0.0.0.0
                                  IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0

                """,
            ] { #expect(certificate.contains(part), "\(part) in \(certificate)") }
        }
        for (upper, lower) in [(root, middle), (middle, leaf)] {
            let subject = try #require(upper.firstMatch(of: /Subject: (CN=heimdallr-proxy [\w-]{22})\n/)).1
            #expect(lower.contains("Issuer: \(subject)\n"))
            let identifier = try #require(upper.firstMatch(of: /Subject Key Identifier: \n *([0-9A-F:]{59})\n/)).1
            #expect(lower.firstMatch(of: /Authority Key Identifier: \n *([0-9A-F:]{59})\n/)?.1 == identifier)
        }
        #expect(leaf.contains("Subject: \n"))
        #expect(leaf.contains("Subject Alternative Name: critical\n                DNS:a.example.com\n"))
    }

    @Test func `a certificate that an intermediate's key signs for another name is refused`() async throws {
        let validity = CertificateValidity(lifetime: 86_400, now: WallClock.now())
        let constraints = CertificateSigner.Constraints(
            permitted: [GeneralName.name("example.com")], excluded: CertificateSigner.Constraints.addresses)
        let root = try CertificateSigner(constraints, pathLength: 1, validity: validity)
        let signer = try CertificateSigner(constraints, validity: validity, issuer: root)
        let files = try CertificateFiles(roots: X509Certificate.pem(root.certificate))
        for (host, check, complaint) in [
            ("a.example.com", "-verify_hostname", nil), ("unlisted.test", "-verify_hostname", "permitted subtree"),
            ("notexample.com", "-verify_hostname", "permitted subtree"),
            ("127.0.0.1", "-verify_ip", "excluded subtree"),
            ("::1", "-verify_ip", "excluded subtree"),
        ] {
            let leaf = try signer.leaf(for: CertificateHost(host), validity: validity)
            let server = ServerCertificate(chain: [leaf.certificate, signer.certificate], key: leaf.key)
            let said = try await files.complaint(about: try files.chain(server), [check, host])
            if let complaint {
                #expect(said?.contains(complaint) == true, "\(host): \(said ?? "accepted")")
            } else {
                #expect(said == nil)
            }
        }
    }

    @Test func `an intermediate takes 1 to 900 domains`() async throws {
        #expect(throws: CryptographyError.certificateDomains(0)) { try SigningIntermediate(for: []) }
        let domains = (0..<901).map { "domain-\($0).example" }
        #expect(throws: CryptographyError.certificateDomains(901)) { try SigningIntermediate(for: domains) }
        let intermediate = try SigningIntermediate(for: domains.dropLast())
        let server = try intermediate.certificate(for: "a.domain-899.example")
        #expect(server.chain[1].count < 30_000)
        let files = try CertificateFiles(roots: intermediate.rootPEM)
        #expect(
            try await files.complaint(about: files.chain(server), ["-verify_hostname", "a.domain-899.example"]) == nil)
        let long = (0..<200).map {
            "\($0)." + String(repeating: "a", count: 60)
                + ".0123456789.0123456789.0123456789.0123456789.0123456789.0123456789.0123456789.0123456789"
        }
        #expect(throws: CryptographyError.certificateDomains(200)) { try SigningIntermediate(for: long) }
        for domain in ["127.0.0.1", "::1", "*.example.com", ""] {
            #expect(throws: CryptographyError.certificateHost(domain)) { try SigningIntermediate(for: [domain]) }
        }
    }

    private func key(_ byte: UInt8 = 7) throws -> SealingKey {
        try SealingKey(SecretBytes([UInt8](repeating: byte, count: 32)))
    }

    @Test func `an intermediate comes back from its sealed form and goes on signing`() async throws {
        let made = try SigningIntermediate(for: ["example.com", "other.test"])
        let again = try SigningIntermediate(sealed: made.seal(key: key()), key: key())
        #expect(again.root == made.root)
        #expect(again.domains == made.domains)
        #expect(again.fits(made.domains))
        let files = try CertificateFiles(roots: made.rootPEM)
        let chain = try files.chain(try again.certificate(for: "a.other.test"))
        #expect(try await files.complaint(about: chain, ["-verify_hostname", "a.other.test"]) == nil)
        #expect(throws: CryptographyError.uncoveredHost("a.test")) { try again.certificate(for: "a.test") }
        #expect(throws: CryptographyError.seal(.key)) {
            try SigningIntermediate(sealed: made.seal(key: key()), key: key(8))
        }
        // The other kind of kept certificates is not taken for it.
        let issued = try CertificateAuthority.issue(for: ["a.test"]).seal(key: key())
        #expect(throws: (any Error).self) { try SigningIntermediate(sealed: issued, key: key()) }
    }

    @Test func `an intermediate is refused after any change of its sealed form`() throws {
        let sealed = try SigningIntermediate(for: ["example.com"]).seal(key: key())
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 0x10
            for bytes in [changed, Array(sealed.prefix(index))] {
                do {
                    _ = try SigningIntermediate(sealed: bytes, key: key())
                    Issue.record("accepted at \(index)")
                } catch CryptographyError.seal {}
            }
        }
    }

    @Test func `an intermediate fits the same domains as long as a third of its life is left`() throws {
        let now: Int64 = 1_800_000_000
        let made = try SigningIntermediate(for: ["example.com", "a.example.com"], lifetime: 600, now: now)
        #expect(made.fits(DomainSet(["example.com"]), now: now + 300))
        #expect(!made.fits(DomainSet(["example.com"]), now: now + 301))
        #expect(!made.fits(DomainSet(["a.example.com"]), now: now))
        #expect(!made.fits(DomainSet(["example.com", "other.test"]), now: now))
    }

    @Test func `Python trusts an intermediate through SSL_CERT_FILE`() async throws {
        let intermediate = try SigningIntermediate(for: ["example.com"])
        let files = try CertificateFiles(roots: intermediate.rootPEM)
        let server = try intermediate.certificate(for: "a.example.com")
        let answers = try await ChildProcess.output(
            of: [
                "python3", Repository.fixture("tls_names.py"), try files.chain(server), try files.key(server),
                "a.example.com", "b.example.com",
            ], environment: ["SSL_CERT_FILE": files.roots]
        ).split(separator: "\n")
        #expect(answers.first == "page")
        #expect(answers.last?.contains("Hostname mismatch") == true)
    }
}
