import Cryptography
import Testing
import WireText

@Suite struct `Sealed bytes` {
    private static let context = Array("record of billing".utf8)

    private static func key(_ byte: UInt8 = 7) throws -> SealingKey {
        try SealingKey(SecretBytes([UInt8](repeating: byte, count: 32)))
    }

    private static func fault(
        of sealed: [UInt8], format: UInt8 = 1, context: [UInt8] = context, key: SealingKey
    ) -> SealFault? {
        do throws(CryptographyError) {
            _ = try SealedBytes.open(sealed, format: format, context: context, key: key)
            return nil
        } catch {
            if case .seal(let fault) = error { return fault }
            Issue.record("\(error)")
            return nil
        }
    }

    @Test("sealed bytes come back whole, whatever their length", arguments: [0, 1, 15, 16, 17, 1000, 70_000])
    func roundTrip(count: Int) throws {
        let plain = SecretBytes(try RandomBytes.make(count))
        let sealed = try SealedBytes.seal(plain, format: 1, context: Self.context, key: Self.key())
        #expect(sealed.count == count + SealedBytes.overhead)
        let opened = try SealedBytes.open(sealed, format: 1, context: Self.context, key: Self.key())
        #expect(opened.isEqual(to: plain))
    }

    @Test("a change of any bit of any sealed byte is noticed")
    func tampering() throws {
        let key = try Self.key()
        let sealed = try SealedBytes.seal(SecretBytes(Array("secret".utf8)), format: 1, context: Self.context, key: key)
        for index in sealed.indices {
            for bit in 0..<8 {
                var changed = sealed
                changed[index] ^= 1 << UInt8(bit)
                #expect(Self.fault(of: changed, key: key) != nil, "byte \(index), bit \(bit)")
            }
        }
        #expect(Self.fault(of: sealed, key: key) == nil)
    }

    @Test("sealed bytes that are cut or longer are noticed, at every length")
    func lengths() throws {
        let key = try Self.key()
        let sealed = try SealedBytes.seal(SecretBytes(Array("secret".utf8)), format: 1, context: Self.context, key: key)
        for count in 0..<sealed.count {
            #expect(Self.fault(of: Array(sealed.prefix(count)), key: key) != nil, "\(count) bytes")
        }
        #expect(Self.fault(of: sealed + [0], key: key) == .damaged)
    }

    @Test("sealed bytes do not open with another key, context or format")
    func reasons() throws {
        let key = try Self.key()
        let sealed = try SealedBytes.seal(SecretBytes([1]), format: 2, context: Self.context, key: key)
        #expect(Self.fault(of: sealed, format: 2, key: try Self.key(8)) == .key)
        #expect(Self.fault(of: sealed, format: 2, context: Array("record of other".utf8), key: key) == .damaged)
        #expect(Self.fault(of: sealed, format: 1, key: key) == .format(found: 2, supported: 1))
        #expect(SealFault.format(found: 2, supported: 1).description.contains("a later version"))
        #expect(SealFault.format(found: 1, supported: 2).description.contains("an earlier version"))
        #expect(Self.fault(of: Array("{\"access_token\":\"plain\"}".utf8), key: key) == .foreign)
        // The format is under the tag: it can't be set back to one that this version reads.
        var claimed = sealed
        claimed[8] = 1
        #expect(Self.fault(of: claimed, format: 1, key: key) == .damaged)
    }

    @Test("sealing the same twice gives different bytes: the nonce is fresh")
    func nonces() throws {
        let key = try Self.key()
        let all = try (0..<1000).map { _ in
            try SealedBytes.seal(SecretBytes([1, 2, 3]), format: 1, context: Self.context, key: key)
        }
        #expect(Set(all.map { Array($0[17..<29]) }).count == 1000)
        #expect(Set(all.map { Array($0[29...]) }).count == 1000)
    }

    @Test("what another implementation of AES-GCM sealed in this layout is opened")
    func knownBytes() throws {
        let text = "aGVpbWRsbHIBi0MrQyOBCo8gISIjJCUmJygpKisHH3fLhNuxVcwpJSeLcBnYI/mfAkA="
        let sealed = try #require(Base64.decode(Array(text.utf8), as: .either))
        let opened = try SealedBytes.open(sealed, format: 1, context: Self.context, key: Self.key())
        #expect(opened.isEqual(to: SecretBytes(Array("known".utf8))))
    }

    @Test("a failed opening leaves nothing behind that a later error would report")
    func errorQueue() throws {
        let key = try Self.key()
        let sealed = try SealedBytes.seal(SecretBytes([1]), format: 1, context: Self.context, key: key)
        for _ in 0..<20 { #expect(Self.fault(of: sealed, context: [], key: key) == .damaged) }
        #expect(try SealedBytes.open(sealed, format: 1, context: Self.context, key: key).count == 1)
    }
}

@Suite struct `Keys` {
    @Test("32 bytes are a key as they are, whatever they are")
    func raw() throws {
        for byte in [0, 0x0A, 0x20, 0x41, 0xFF] as [UInt8] {
            let bytes = SecretBytes([UInt8](repeating: byte, count: 32))
            _ = try SealingKey(text: bytes)
            _ = try SealingKey(bytes)
        }
    }

    @Test("base64 of 32 bytes is the same key, in both alphabets, padded or not, with a line end or without")
    func base64() throws {
        let bytes = (0..<32).map { UInt8($0 * 8) + 7 }
        let plain = SecretBytes([1, 2, 3])
        let sealed = try SealedBytes.seal(plain, format: 1, context: [], key: SealingKey(SecretBytes(bytes)))
        let standard = Base64.encode(bytes)
        for text in [
            standard, standard + "\n", " \t" + standard + "\r\n", Base64.encode(bytes, alphabet: .url),
            Base64.encode(bytes, alphabet: .url) + "\n\n",
        ] {
            let key = try SealingKey(text: SecretBytes(Array(text.utf8)))
            #expect(try SealedBytes.open(sealed, format: 1, context: [], key: key).isEqual(to: plain))
        }
    }

    @Test("a key of another length is refused with the number of bytes that it makes")
    func refused() throws {
        for (text, count) in [
            ("", 0), ("short", 5), (String(repeating: "f0", count: 32), 48), (Base64.encode([1, 2, 3, 4]), 4),
            (String(repeating: "!", count: 44), 44),
        ] {
            #expect(throws: CryptographyError.keySize(count)) {
                try SealingKey(text: SecretBytes(Array(text.utf8)))
            }
        }
    }
}
