import Testing
import WireText

@Suite struct `Percent and form encoding` {
    @Test(
        "percent encoding keeps the bytes of its rule, and escapes everything else",
        arguments: [
            (PercentEncoding.uri, "-._~"), (.form, "-._"), (.fileName, "-_"),
            (.grpcMessage, " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ])
    func encoding(rule: PercentEncoding, marks: String) {
        let kept = Set((marks + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz").utf8)
        for byte in UInt8.min...UInt8.max {
            let expected =
                kept.contains(byte)
                ? String(Unicode.Scalar(byte))
                : byte == 0x20 && rule == .form
                    ? "+" : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            #expect(rule.encode([byte]) == expected)
            #expect(rule.decodeBytes(expected.utf8) == [byte])
        }
        #expect(rule.encode("é") == "%C3%A9")
    }

    @Test("each escape is read once, in either case; a plus is a space in forms alone")
    func decoding() {
        #expect(PercentEncoding.uri.decode("a%2fb%2Fc+d".utf8) == "a/b/c+d")
        #expect(PercentEncoding.form.decode("a%2fb+c%2B".utf8) == "a/b c+")
        #expect(PercentEncoding.uri.decode("%2541".utf8) == "%41")
        #expect(PercentEncoding.uri.decode("".utf8) == "")
    }

    @Test(
        "broken escapes and text that is not UTF-8 are refused",
        arguments: ["%", "%4", "a%4", "%g0", "%0g", "%+f", "%-1", "% 1", "%%41", "%ff", "%c0%80", "%ed%a0%80"])
    func broken(text: String) {
        #expect(PercentEncoding.uri.decode(text.utf8) == nil)
        #expect(PercentEncoding.form.decode(text.utf8) == nil)
    }

    @Test("a form's fields come by name")
    func fields() {
        #expect(FormText.fields("a=1&b=x+y%3D&c=&d&&e==".utf8) == ["a": "1", "b": "x y=", "c": "", "d": "", "e": "="])
        #expect(FormText.fields("".utf8) == [:])
    }

    @Test(
        "a form with a name that stands twice is refused, however it is spelt",
        arguments: ["a=1&a=1", "a=1&%61=2", "a&a"])
    func twice(text: String) {
        #expect(FormText.fields(text.utf8) == nil)
    }

    @Test("a form with a broken half is refused", arguments: ["a=%", "%=a", "a=%ff", "%ff=1"])
    func brokenForm(text: String) {
        #expect(FormText.fields(text.utf8) == nil)
    }

    @Test("an error says which half of a pair is broken")
    func pair() {
        #expect(FormText.pair("a=%".utf8) == ("a", nil))
        #expect(FormText.pair("%=b".utf8) == (nil, "b"))
        #expect(FormText.pair("a".utf8) == ("a", ""))
    }
}
