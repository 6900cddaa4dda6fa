import Cryptography
import FileSystem
import Foundation
import TestSupport
import Testing
import WireText

@Suite struct `Bytes that matter` {
    @Test("base64 of a secret is a secret, and as many random bytes come as were asked for")
    func secretBase64() throws {
        for count in 0..<70 {
            let bytes = try RandomBytes.make(count)
            #expect(bytes.count == count)
            for alphabet in [Base64.Alphabet.standard, .url] {
                let encoded = Base64.encode(SecretBytes(bytes), alphabet: alphabet)
                #expect(encoded.isEqual(to: SecretBytes(Array(Base64.encode(bytes, alphabet: alphabet).utf8))))
            }
        }
    }

    @Test(
        "HMAC-SHA256 gives the results of RFC 4231, sections 4.3 and 4.7",
        arguments: [
            (
                Array("Jefe".utf8), "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                [UInt8](repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ])
    func hmac(key: [UInt8], message: String, expected: String) throws {
        let code = try Digest.hmacSHA256(Array(message.utf8), key: key)
        let shown = code.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 2 ? digits : "0" + digits
        }
        #expect(shown.joined() == expected)
    }

    @Test("SHA-1 gives the result of FIPS 180-4, example of one block")
    func sha1() throws {
        let expected: [UInt8] = [
            0xA9, 0x99, 0x3E, 0x36, 0x47, 0x06, 0x81, 0x6A, 0xBA, 0x3E, 0x25, 0x71, 0x78, 0x50, 0xC2, 0x6C, 0x9C, 0xD0,
            0xD8, 0x9D,
        ]
        #expect(try Digest.sha1(Array("abc".utf8)) == expected)
    }

    @Test("random identifiers differ and are 22 characters of base64url")
    func identifiers() throws {
        let all = try (0..<1000).map { _ in try RandomBytes.identifier() }
        #expect(Set(all).count == 1000)
        #expect(all.allSatisfy { $0.utf8.count == 22 })
    }

    @Test("comparison in constant time finds each difference")
    func comparison() {
        #expect(ConstantTime.isEqual([1, 2], [1, 2]))
        #expect(ConstantTime.isEqual([], []))
        #expect(!ConstantTime.isEqual([1, 2], [1, 3]))
        #expect(!ConstantTime.isEqual([1, 2], [1, 2, 3]))
    }

    @Test("a secret file is read without the one line end that editors add")
    func secretFile() throws {
        let folder = try TemporaryDirectory()
        for (content, expected) in [
            ("s3cret", "s3cret"), ("s3cret\n", "s3cret"), ("s3cret\r\n", "s3cret"), ("s3cret\n\n", "s3cret\n"),
            ("s3cret\r", "s3cret\r"), (" s \n", " s "), ("", ""), ("\n", ""),
        ] {
            let path = try folder.write(content, to: "secret")
            let read = try SecretFile.read(path: path)
            #expect(read.isEqual(to: SecretBytes(Array(expected.utf8))))
        }
        let long = try folder.write(String(repeating: "x", count: 100), to: "long")
        #expect(throws: CryptographyError.file(.tooLarge(path: long, limit: 99))) {
            try SecretFile.read(path: long, limit: 99)
        }
        #expect(try SecretFile.read(path: long, limit: 100).count == 100)
        #expect(throws: CryptographyError.file(.system(operation: "read", path: folder.path, errno: EISDIR))) {
            try SecretFile.read(path: folder.path)
        }
    }

    @Test("a secret file read whole keeps the line end that a raw key may have")
    func wholeFile() throws {
        let folder = try TemporaryDirectory()
        let key = [UInt8](repeating: 0x0A, count: 32)
        let path = try folder.write(key, to: "key")
        #expect(try SecretFile.read(path: path, trimsLineEnd: false).isEqual(to: SecretBytes(key)))
    }

    @Test("SHA-256 gives the results of FIPS 180-4")
    func digest() throws {
        for (text, hex) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            let digest = try Digest.sha256(Array(text.utf8))
            #expect(digest.map { String(format: "%02x", Int($0)) }.joined() == hex)
        }
    }
}
