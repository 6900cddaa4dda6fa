import Testing
import WireText

@Suite struct `Base64 text` {
    /// RFC 4648 section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648 are encoded and decoded, with padding and without`(plain: String, encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        let unpadded = encoded.filter { $0 != "=" }
        #expect(Base64.encode(Array(plain.utf8), alphabet: .url) == unpadded)
        #expect(Base64.decode(Array(encoded.utf8), as: .padded) == Array(plain.utf8))
        #expect(Base64.decode(Array(encoded.utf8), as: .either) == Array(plain.utf8))
        #expect(Base64.decode(Array(unpadded.utf8), as: .either) == Array(plain.utf8))
        #expect(Base64.decode(Array(unpadded.utf8), as: .url) == Array(plain.utf8))
        guard encoded != unpadded else { return }
        #expect(Base64.decode(Array(unpadded.utf8), as: .padded) == nil)
        #expect(Base64.decode(Array(encoded.utf8), as: .url) == nil)
    }

    @Test("every byte comes back, in both alphabets")
    func roundTrip() {
        for length in 0..<70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length &* 11) }
            let standard = Array(Base64.encode(bytes).utf8)
            let url = Array(Base64.encode(bytes, alphabet: .url).utf8)
            #expect(Base64.decode(standard, as: .padded) == bytes)
            #expect(Base64.decode(url, as: .url) == bytes)
            #expect(Base64.decode(standard, as: .either) == bytes)
            #expect(Base64.decode(url, as: .either) == bytes)
        }
    }

    @Test("a form takes its own alphabet only")
    func alphabets() {
        for text in ["-_-_", "--==", "_w=="] { #expect(Base64.decode(Array(text.utf8), as: .padded) == nil) }
        for text in ["+/+/", "++", "+w"] { #expect(Base64.decode(Array(text.utf8), as: .url) == nil) }
        #expect(Base64.decode(Array("+/-_".utf8), as: .either) != nil)
    }

    @Test(
        "base64 that is cut, padded wrongly or holds another character is refused",
        arguments: [
            "Z", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm9v=", "====", "=", "==", "Z===", "Zg==Zg==", "Z g=", "Zg==\n",
            "Zm9%",
            "Zm=v", "Zm9vZ", "é", "Zh", "Zm9",
        ])
    func bad(text: String) {
        for reading in [Base64.Reading.either, .padded, .url] {
            #expect(Base64.decode(Array(text.utf8), as: reading) == nil, "\(reading)")
        }
    }
}
