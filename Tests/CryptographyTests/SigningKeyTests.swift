import Foundation
import TestSupport
import Testing
import WireText

@testable import Cryptography

@Suite(.timeLimit(.minutes(2))) struct `A signing key` {
    private func key(_ text: String) throws -> SigningKey { try SigningKey(text: SecretBytes(Array(text.utf8))) }

    private func parts(_ token: String) throws -> (message: [UInt8], signature: [UInt8]) {
        let dot = try #require(token.lastIndex(of: "."))
        let signature = try #require(Base64.decode(Array(token[token.index(after: dot)...].utf8), as: .url))
        return (Array(token[..<dot].utf8), signature)
    }

    private func verification(_ key: SigningKey) throws -> VerificationKey {
        func number(_ name: String) throws -> [UInt8] {
            guard case .string(let text) = key.publicKey.members.first(where: { $0.name == name })?.value else {
                throw TestFailure("no \(name)")
            }
            return try #require(Base64.decode(Array(text.utf8), as: .url))
        }
        switch key.kind {
        case .rsa: return try VerificationKey(modulus: number("n"), exponent: number("e"))
        case .elliptic(let curve): return try VerificationKey(curve, x: number("x"), y: number("y"))
        case .ed25519: return try VerificationKey(ed25519: number("x"))
        }
    }

    private func fault(_ text: String) -> KeyFault? {
        do {
            _ = try key(text)
            return nil
        } catch CryptographyError.key(let fault) {
            return fault
        } catch {
            Issue.record(error)
            return nil
        }
    }

    @Test("a signing key makes the signatures of RFC 7515 A.2 and RFC 8037 A.4, to the byte")
    func deterministic() throws {
        let rsa = try parts(JOSEVectors.rs256)
        #expect(try key(JOSEVectors.rsaKey).sign(rsa.message, by: .rs256) == rsa.signature)
        let edwards = try parts(JOSEVectors.edDSA)
        #expect(try key(JOSEVectors.edKey).sign(edwards.message, by: .edDSA) == edwards.signature)
    }

    @Test("the keys of RFC 7515 A.3 and RFC 7520 4.2 have public halves that take the RFCs' signatures")
    func published() throws {
        let elliptic = try parts(JOSEVectors.es256)
        let ecKey = try verification(try key(JOSEVectors.ecKey))
        #expect(try ecKey.accepts(elliptic.signature, of: elliptic.message, by: .ecdsa(.p256)))
        let pss = try parts(JOSEVectors.ps384)
        let pssKey = try verification(try key(JOSEVectors.pssKey))
        #expect(try pssKey.accepts(pss.signature, of: pss.message, by: .rsaPSS(.sha384)))
        let rsa = try parts(JOSEVectors.rs256)
        let rsaKey = try verification(try key(JOSEVectors.rsaKey))
        #expect(try rsaKey.accepts(rsa.signature, of: rsa.message, by: .rsa(.sha256)))
    }

    @Test("a signing key has the thumbprints of RFC 7638 3.1 and RFC 8037 A.3")
    func thumbprints() throws {
        let rsa = try key(JOSEVectors.privateKey)
        #expect(try rsa.publicKey.thumbprint() == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        #expect(rsa.identifier == "2011-04-29")
        let edwards = try key(JOSEVectors.edKey)
        #expect(try edwards.publicKey.thumbprint() == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
        #expect(
            edwards.publicKey.text
                == #"{"crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#)
    }

    @Test(
        "a signing key is read from what another library writes, and that library takes its signatures",
        arguments: [
            ("rsa2048", "pem"), ("rsa2048", "traditional"), ("rsa2048", "jwk"), ("p256", "pem"),
            ("p256", "traditional"), ("p256", "jwk"), ("p384", "pem"), ("p384", "jwk"), ("ed25519", "pem"),
            ("ed25519", "jwk"),
        ])
    func foreign(kind: String, form: String) async throws {
        let text = try await ForeignKeys.make(kind, form)
        let key = try key(text)
        #expect(try key.publicKey.thumbprint() == (try await ForeignKeys.thumbprint(text)))
        for algorithm in SigningAlgorithm.fitting(key.kind) {
            let header = Base64.encode(Array(#"{"alg":"\#(algorithm.rawValue)"}"#.utf8), alphabet: .url)
            let message = Array("\(header).e30".utf8)
            let signature = try key.sign(message, by: algorithm)
            #expect(try verification(key).accepts(signature, of: message, by: algorithm.signature))
            let token = "\(header).e30.\(Base64.encode(signature, alphabet: .url))"
            _ = try await ForeignKeys.verify(token, key: text, algorithm: algorithm.rawValue)
        }
        let again = try SigningKey(exported: try key.exported())
        #expect(again.publicKey == key.publicKey)
    }

    @Test("a key that can't be used is refused with its reason, and nothing of it is told")
    func refused() async throws {
        #expect(fault(try await ForeignKeys.make("rsa1024")) == .tooShort(1024))
        #expect(fault(try await ForeignKeys.make("rsa1024", "jwk")) == .tooShort(1024))
        #expect(fault(try await ForeignKeys.make("p521")) == .kind)
        #expect(fault(try await ForeignKeys.make("secp256k1")) == .kind)
        #expect(fault(try await ForeignKeys.make("p256", "encrypted")) == .encrypted)
        #expect(fault(try await ForeignKeys.make("p256", "public")) == .publicOnly)
        for text in ["", "x", "{", "{}", "[]", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            #expect(fault(text) == .notAKey, "\(text)")
        }
        let ca = try await PrivateCA()
        #expect(fault(try String(contentsOfFile: ca.certificateFile, encoding: .utf8)) == .certificate)
        let jwk = JOSEVectors.edKey.dropLast()
        #expect(fault(jwk + #","use":"enc"}"#) == .notForSigning)
        #expect(fault(jwk + #","key_ops":["verify"]}"#) == .notForSigning)
        #expect(fault(jwk + #","key_ops":["sign"]}"#) == nil)
        #expect(fault(JOSEVectors.edKey.replacing("11qY", with: "21qY")) == .inconsistent)
        #expect(fault(#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#) == .publicOnly)
        #expect(fault(#"{"kty":"oct","k":"AA"}"#) == .kind)
        let other = try await ForeignKeys.make("p256", "jwk")
        let mixed = JOSEVectors.ecKey.replacing(
            try #require(JOSEVectors.ecKey.firstMatch(of: /"d":"[^"]*"/)).0,
            with: try #require(other.replacing(" ", with: "").firstMatch(of: /"d":"[^"]*"/)).0)
        #expect(fault(mixed) == .inconsistent)
        let key = try key(JOSEVectors.edKey)
        #expect("\(key)" == "an Ed25519 key")
        #expect(String(reflecting: key) == "an Ed25519 key")
    }

    @Test("a key signs with the wanted algorithm, its JWK's, or the usual one of its kind")
    func algorithms() throws {
        let rsa = try key(JOSEVectors.rsaKey)
        #expect(try rsa.algorithm() == .rs256)
        #expect(try rsa.algorithm(wanted: .ps256) == .ps256)
        #expect(throws: CryptographyError.self) { try rsa.algorithm(wanted: .es256) }
        #expect(throws: CryptographyError.self) { try rsa.sign([], by: .es256) }
        let pss = try key(String(JOSEVectors.rsaKey.dropLast()) + #","alg":"PS256"}"#)
        #expect(try pss.algorithm() == .ps256)
        #expect(throws: CryptographyError.self) { try pss.algorithm(wanted: .rs256) }
    }

    @Test("a new signing key differs from every other one")
    func generated() throws {
        let (one, other) = (try SigningKey.generate(), try SigningKey.generate())
        #expect(one.kind == .elliptic(.p256))
        #expect(one.publicKey != other.publicKey)
        let signature = try one.sign([1, 2, 3], by: .es256)
        #expect(signature.count == 64)
        #expect(try verification(one).accepts(signature, of: [1, 2, 3], by: .ecdsa(.p256)))
        #expect(try !verification(other).accepts(signature, of: [1, 2, 3], by: .ecdsa(.p256)))
    }

    @Test("short numbers of a signature keep their leading zeros")
    func padding() throws {
        let key = try SigningKey.generate()
        let check = try verification(key)
        // One in 128 begins with a zero byte in R or S.
        for number in 0..<600 {
            let message = Array("\(number)".utf8)
            let signature = try key.sign(message, by: .es256)
            #expect(signature.count == 64)
            #expect(try check.accepts(signature, of: message, by: .ecdsa(.p256)))
        }
    }
}
