import Testing
import WireText

@Suite struct `Bytes of ASCII` {
    @Test("token bytes are those of RFC 9110 section 5.6.2, and no other")
    func token() {
        let tchar = Set(
            "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect(ASCII.isTokenByte(byte) == tchar.contains(byte), "\(byte)")
        }
        #expect(ASCII.isToken("X-Api-Key"))
        for text in ["", "a b", "a:b", "é", "a\u{0}"] { #expect(!ASCII.isToken(text)) }
    }

    @Test("each class answers for every byte")
    func classes() {
        for byte in UInt8.min...UInt8.max {
            let character = Character(Unicode.Scalar(byte))
            let isDigit = byte < 0x80 && character.isNumber
            #expect(ASCII.isDigit(byte) == isDigit)
            #expect(ASCII.isLetter(byte) == (byte < 0x80 && character.isLetter))
            #expect(ASCII.isAlphanumeric(byte) == (ASCII.isDigit(byte) || ASCII.isLetter(byte)))
            #expect(ASCII.hexValue(byte).map(Int.init) == (byte < 0x80 ? character.hexDigitValue : nil))
            #expect(ASCII.isWhitespace(byte) == [0x20, 0x09, 0x0A, 0x0D].contains(byte))
            #expect(ASCII.isBlank(byte) == [0x20, 0x09].contains(byte))
            let isCapital = (0x41...0x5A).contains(byte)
            #expect(ASCII.lowercased(byte) == (isCapital ? byte + 0x20 : byte))
        }
        for value in UInt8(0)..<16 {
            #expect(ASCII.hexValue(ASCII.hexDigit(value)) == value)
            #expect(ASCII.hexDigitUppercased(value) == Array("0123456789ABCDEF".utf8)[Int(value)])
        }
    }

    @Test("ASCII text is compared without case, and without Unicode's rules")
    func comparing() {
        #expect(ASCII.equalIgnoringCase("Content-TYPE", "content-type"))
        #expect(!ASCII.equalIgnoringCase("content-type", "content_type"))
        #expect(!ASCII.equalIgnoringCase("k", "\u{212A}"))
        #expect(!ASCII.equalIgnoringCase("@", "`"))
        #expect(!ASCII.equalIgnoringCase("abc", "ab"))
    }

    @Test("trimming takes blanks and line ends away, and nothing else")
    func trimming() {
        for (text, trimmed) in [
            (" \t a b\r\n", "a b"), ("", ""), (" \n", ""), ("x", "x"), ("\u{B}x\u{0}", "\u{B}x\u{0}"),
        ] {
            let bytes = Array(text.utf8)
            let found = bytes.span.trimmed.text
            #expect(found == trimmed)
        }
    }

    @Test("a field value has no controls, and tabs where it is said")
    func fieldValue() {
        #expect(ASCII.isFieldValue("a b é", allowingTabs: false))
        #expect(ASCII.isFieldValue("a\tb", allowingTabs: true))
        #expect(!ASCII.isFieldValue("a\tb", allowingTabs: false))
        for bad in ["a\r", "a\n", "\u{0}", "\u{7F}"] { #expect(!ASCII.isFieldValue(bad, allowingTabs: true)) }
    }

    @Test("spans compare and copy as arrays do")
    func spans() {
        let bytes = Array("Basic é".utf8)
        let copy = [UInt8](copying: bytes.span)
        #expect(copy == bytes)
        for (other, isEqual) in [("Basic é", true), ("Basic e", false), ("basic é", false), ("Basic", false)] {
            let found = bytes.span.elementsEqual(Array(other.utf8))
            #expect(found == isEqual)
        }
        for (other, isEqual) in [("basic é", true), ("basic", false), ("basic e", false)] {
            let found = bytes.span.equalsIgnoringCase(Array(other.utf8))
            #expect(found == isEqual)
        }
        let text = bytes.span.text
        #expect(text == "Basic é")
    }
}
