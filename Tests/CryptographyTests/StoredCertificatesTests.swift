import Testing
import WireText

@testable import Cryptography

@Suite(.timeLimit(.minutes(2))) struct `Stored certificates` {
    private static let hosts = ["a.test", "b.test", "::1"]

    private func key(_ byte: UInt8 = 7) throws -> SealingKey {
        try SealingKey(SecretBytes([UInt8](repeating: byte, count: 32)))
    }

    /// The plain bytes under the seal.
    private func plain(_ sealed: [UInt8]) throws -> [UInt8] {
        try SealedBytes.open(
            sealed, format: 1, context: Array("heimdallr-proxy issued certificates".utf8), key: key()
        ).withSpan { [UInt8](copying: $0) }
    }

    private func opened(plain: [UInt8]) throws -> IssuedCertificates {
        let sealed = try SealedBytes.seal(
            SecretBytes(plain), format: 1, context: Array("heimdallr-proxy issued certificates".utf8), key: key())
        return try IssuedCertificates(sealed: sealed, key: key())
    }

    @Test func `stored certificates come back as they were`() async throws {
        let issued = try CertificateAuthority.issue(for: Self.hosts)
        let again = try IssuedCertificates(sealed: issued.seal(key: key()), key: key())
        #expect(again.roots == issued.roots)
        #expect(again.validity.notBefore == issued.validity.notBefore)
        #expect(again.validity.notAfter == issued.validity.notAfter)
        #expect(again.leaves.mapValues(\.chain) == issued.leaves.mapValues(\.chain))
        #expect(again.leaves.mapValues(\.key.publicKey) == issued.leaves.mapValues(\.key.publicKey))
        let files = try CertificateFiles(again)
        for (host, leaf) in again.leaves {
            let check = host == "::1" ? "-verify_ip" : "-verify_hostname"
            #expect(try await files.complaint(about: files.chain(leaf), [check, host]) == nil)
        }
        let none = try CertificateAuthority.issue(for: [])
        #expect(try IssuedCertificates(sealed: none.seal(key: key()), key: key()).leaves.isEmpty)
    }

    @Test func `stored certificates are refused after any change`() throws {
        let sealed = try CertificateAuthority.issue(for: ["a.test"]).seal(key: key())
        func expectFault(_ bytes: [UInt8], _ place: String) throws {
            do {
                _ = try IssuedCertificates(sealed: bytes, key: key())
                Issue.record("accepted \(place)")
            } catch CryptographyError.seal {}
        }
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 0x10
            try expectFault(changed, "changed at \(index)")
            try expectFault(Array(sealed.prefix(index)), "cut to \(index)")
        }
        #expect(throws: CryptographyError.seal(.key)) { try IssuedCertificates(sealed: sealed, key: key(8)) }
    }

    @Test func `stored certificates are checked under the seal, too`() throws {
        let issued = try CertificateAuthority.issue(for: ["a.test", "::1"])
        let plain = try plain(issued.seal(key: key()))
        #expect(try opened(plain: plain).leaves.count == 2)
        // A third of the positions, others in each run.
        for index in stride(from: Int.random(in: 0..<3), to: plain.count, by: 3) {
            #expect(throws: CryptographyError.seal(.damaged), "cut to \(index)") {
                try opened(plain: Array(plain.prefix(index)))
            }
            var changed = plain
            changed[index] ^= 1 << UInt8(index % 8)
            // A bit that no reader of DER looks at may change.
            do {
                let changed = try opened(plain: changed)
                #expect(changed.leaves.mapValues(\.chain) == issued.leaves.mapValues(\.chain), "changed at \(index)")
                #expect(changed.leaves.mapValues(\.key.publicKey) == issued.leaves.mapValues(\.key.publicKey))
            } catch CryptographyError.seal(.damaged) {}
        }
        #expect(throws: CryptographyError.seal(.damaged)) { try opened(plain: plain + [0]) }
        #expect(throws: CryptographyError.seal(.damaged)) { try opened(plain: [UInt8](repeating: 0xFF, count: 64)) }
    }

    @Test func `stored certificates are refused with another's key, another's root or for another host`() throws {
        let one = try CertificateAuthority.issue(for: ["a.test", "b.test"])
        let other = try CertificateAuthority.issue(for: ["a.test", "b.test"])
        let (a, b) = (try #require(one.leaves["a.test"]), try #require(one.leaves["b.test"]))
        func expectRefused(_ roots: [[UInt8]], _ leaves: [String: ServerCertificate]) throws {
            let mixed = IssuedCertificates(roots: roots, leaves: leaves, validity: one.validity)
            #expect(throws: CryptographyError.seal(.damaged)) {
                try IssuedCertificates(sealed: mixed.seal(key: key()), key: key())
            }
        }
        try expectRefused(one.roots, ["a.test": ServerCertificate(chain: a.chain, key: b.key)])
        try expectRefused(other.roots, ["a.test": a])
        try expectRefused([], ["a.test": a])
        try expectRefused(one.roots, ["b.test": a])
        try expectRefused(one.roots, ["*": a])
        try expectRefused(a.chain, ["a.test": a])
    }

    @Test func `stored certificates fit their hosts and fewer as long as a third of their life is left`() throws {
        let now: Int64 = 1_800_000_000
        let issued = try CertificateAuthority.issue(for: Self.hosts, lifetime: 600, now: now)
        #expect(issued.fits(Self.hosts, now: now))
        #expect(issued.fits(Self.hosts.reversed() + ["a.test"], now: now))
        #expect(issued.fits(["a.test"], now: now))
        for others in [Self.hosts + ["c.test"], ["a.test", "b.test", "::2"]] { #expect(!issued.fits(others, now: now)) }
        let fewer = issued.limited(to: ["a.test", "c.test"])
        #expect(Array(fewer.leaves.keys) == ["a.test"])
        #expect(fewer.roots == issued.roots)
        // 900 s in all.
        #expect(issued.fits(Self.hosts, now: now - 300))
        #expect(issued.fits(Self.hosts, now: now + 300))
        for wrong in [now - 301, now + 301, now + 601, .min, .max] { #expect(!issued.fits(Self.hosts, now: wrong)) }
    }
}
