import Cryptography
import Testing
import WireText

@Suite("Keys from another key, HKDF of RFC 5869") struct HKDFTests {
    /// The first block of the vectors of appendix A.1 and A.3.
    @Test(arguments: [
        (
            [UInt8](0x00...0x0C), [UInt8](0xF0...0xF9),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
        ),
        (
            [UInt8](repeating: 0, count: 32), [], "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
        ),
    ])
    func `the derived key is that of RFC 5869`(salt: [UInt8], purpose: [UInt8], expected: String) throws {
        let secret = SecretBytes([UInt8](repeating: 0x0B, count: 22))
        let key = try HKDF.sha256(secret, salt: salt, purpose: purpose)
        #expect(key.withSpan { [UInt8](copying: $0).hexadecimal } == Array(expected.utf8))
    }

    @Test func `another purpose and another key give another derived key`() throws {
        let keys = try [1, 2].map { try SealingKey(SecretBytes([UInt8](repeating: $0, count: 32))) }
        let derived = try keys.flatMap { key in try ["one", "two"].map { try key.derived(for: $0) } }
        let texts = Set(derived.map { key in key.withSpan { [UInt8](copying: $0) } })
        #expect(texts.count == 4)
        #expect(try keys[0].derived(for: "one").isEqual(to: derived[0]))
    }
}
