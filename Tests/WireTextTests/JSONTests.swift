import Testing
import WireText

@Suite struct `JSON that is written` {
    private let value = JSON.object([
        .init("z", 1), .init("a", .object([.init("x", true)])), .init("l", .array([1, .null, "s"])),
        .init("e", .object([])),
        .init("d", .decimal(1.5)), .init("n", .literal("1e5")), .init("none", .array([])),
    ])

    @Test("JSON that is written keeps the order of its members, in each layout")
    func layouts() {
        #expect(
            value.text(.compact)
                == #"{"z":1,"a":{"x":true},"l":[1,null,"s"],"e":{},"d":1.5,"n":1e5,"none":[]}"#)
        #expect(
            value.line
                == #"{"z": 1, "a": {"x": true}, "l": [1, null, "s"], "e": {}, "d": 1.5, "n": 1e5, "none": []}"#)
        #expect(
            JSON.object([.init("a", .object([.init("b", .array([1, 2]))])), .init("c", .object([]))]).document
                == """
                {
                  "a": {
                    "b": [
                      1,
                      2
                    ]
                  },
                  "c": {}
                }

                """)
    }

    @Test("JSON that is written reads back as the same text, whatever it holds and however it is escaped")
    func roundTrip() throws {
        let hostile =
            (0..<0x300).compactMap { Unicode.Scalar($0) } + ["\u{2028}", "\u{202E}", "\u{FEFF}", "😀", "\u{E0001}"]
        var text = ""
        text.unicodeScalars.append(contentsOf: hostile)
        for escaping in [JSONEscaping.required, .invisible, .page] {
            let written = JSON.object([.init(text, .string(text))]).text(.compact, escaping: escaping)
            #expect(try JSONParser.parse(Array(written.utf8)) == .object([text: .string(text)]))
        }
    }

    @Test("JSON that is written escapes what its reader can't bear")
    func escaping() {
        func quoted(_ text: String, _ escaping: JSONEscaping) -> String {
            JSON.string(text).text(.compact, escaping: escaping)
        }
        #expect(quoted("\"\\\n\r\t\u{1}", .required) == #""\"\\\n\r\t\u0001""#)
        #expect(quoted("\u{7F}\u{2028}<", .required) == "\"\u{7F}\u{2028}<\"")
        #expect(quoted("\u{7F}\u{85}\u{2028}\u{202E}<", .invisible) == #""\u007f\u0085\u2028\u202e<""#)
        #expect(quoted("</script>\u{E0001}", .page) == #""\u003c/script>\udb40\udc01""#)
    }

    @Test("JSON that was read can be written again")
    func values() throws {
        let text = #"{"a":[1.50,-2e9,true,null,"x"],"b":{"c":""}}"#
        let value = try JSONParser.parse(Array(text.utf8))
        #expect(JSON(value).text(.compact) == text)
    }

    @Test(arguments: [
        (0, "0"), (1, "1"), (-1.5, "-1.5"), (0.0005, "0.001"), (0.0004, "0"), (1234.5678, "1234.568"),
        (Double.nan, "null"), (.infinity, "null"), (1e16, "null"), (0.1, "0.1"),
    ])
    func `decimals have three digits behind the point, and what JSON can't spell is null`(value: Double, text: String) {
        #expect(DecimalText.thousandths(value) == text)
        #expect(JSON.decimal(value).line == text)
    }

    @Test("durations are written in seconds, and nothing as null")
    func durations() {
        #expect(JSON(.milliseconds(1500)).line == "1.5")
        #expect(JSON(nil as Duration?).line == "null")
        #expect(JSON(nil as String?).line == "null")
        #expect(JSON("x" as String?) == "x")
    }
}
