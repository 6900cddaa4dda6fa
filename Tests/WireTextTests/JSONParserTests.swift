import Testing
import WireText

@Suite struct `The JSON parser` {
    private func parse(_ text: String) -> JSONValue? { try? JSONParser.parse(Array(text.utf8)) }

    @Test("the JSON parser reads what RFC 8259 allows")
    func good() {
        #expect(
            parse(#" { "a" : [ 1 , -2.5e+3, true, false, null, "x" ], "b": {} } "#)
                == .object([
                    "a": .array([
                        .number("1"), .number("-2.5e+3"), .bool(true), .bool(false), .null, .string("x"),
                    ]), "b": .object([:]),
                ]))
        #expect(parse(#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#) == .string("\"\\/\u{8}\u{c}\n\r\té😀"))
        #expect(parse("\u{FEFF}[]") == .array([]))
        #expect(parse("0") == .number("0"))
    }

    @Test(
        "text that breaks the grammar of JSON is refused",
        arguments: [
            "", " ", "{", "}", "[1,]", "{\"a\":1,}", "{a:1}", "{\"a\" 1}", "[1 2]", "01", "+1", "1.", ".5", "1e", "--1",
            "tru", "nul", "True", "NaN", "Infinity", "1e999", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
            "\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"a\nb\"", "\"\u{0}\"", "{} {}", "[]]",
            "// x\n1", "'a'", "\u{FEFF}\u{FEFF}1", "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}",
        ])
    func bad(text: String) {
        #expect(parse(text) == nil)
    }

    @Test("the JSON parser refuses bytes that are not UTF-8, and nesting without end")
    func hostile() {
        for bytes in [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0xEF, 0xBB]]
            as [[UInt8]]
        {
            #expect(throws: JSONParser.Fault.self) { try JSONParser.parse(bytes) }
        }
        #expect(throws: JSONParser.Fault.tooDeep) {
            try JSONParser.parse(Array(String(repeating: "[", count: 1_000_000).utf8))
        }
        #expect(parse(String(repeating: "[", count: 30) + String(repeating: "]", count: 30)) != nil)
    }

    @Test("the JSON parser never traps on a cut or a changed byte")
    func mutations() {
        let text = Array(#"{"access_token":"x\u00e9\ud83d\ude00","expires_in":-3.5e1,"s":["a",null,true]}"#.utf8)
        for end in text.indices {
            #expect(throws: JSONParser.Fault.self) { try JSONParser.parse(Array(text[..<end])) }
            for byte in [0, 0x22, 0x5C, 0x7B, 0x7D, 0x80, 0xFF] as [UInt8] {
                var changed = text
                changed[end] = byte
                _ = try? JSONParser.parse(changed)
            }
        }
    }

    @Test("the JSON parser says where the members of an object stand, and hands out their strings in pieces")
    func members() throws {
        let text = #" {"a":"x\u00e9\/y", "n" : -1.5 , "z":null,"o":{"q":["r"]}, "e":""}"#
        let bytes = Array(text.utf8)
        let found = try JSONParser.members(bytes.span)
        let members = try #require(found)
        #expect(members.keys.sorted() == ["a", "e", "n", "o", "z"])
        func decoded(_ name: String) -> String? {
            guard case .string(let range) = members[name]?.value else { return nil }
            var output: [UInt8] = []
            JSONParser.decode(string: range, in: bytes.span) { output.append(copying: $0) }
            return String(validating: output, as: UTF8.self)
        }
        #expect(decoded("a") == "xé/y")
        #expect(decoded("e") == "")
        #expect(members["n"]?.value == .number("-1.5"))
        #expect(members["z"]?.value == .null)
        guard case .other(let object) = members["o"]?.value else { throw JSONParser.Fault.malformed(at: 0) }
        #expect(String(decoding: bytes[object], as: UTF8.self) == #"{"q":["r"]}"#)
        let source = try #require(members["o"]?.source)
        #expect(String(decoding: bytes[source], as: UTF8.self) == #""o":{"q":["r"]}"#)
    }

    @Test(
        "an object's members are checked as strictly as whole documents",
        arguments: [
            #"{"a":1,"a":2}"#, #"{"a":{"b":1,"b":2}}"#, #"{"a":"\ud800"}"#, #"{"a":"x"#, #"{"a":"x"} x"#,
            "{\"a\":\"\n\"}",
        ])
    func badMembers(text: String) {
        #expect(throws: JSONParser.Fault.self) { _ = try JSONParser.members(Array(text.utf8).span) }
    }

    @Test("an object is told from other values")
    func notAnObject() throws {
        let members = try JSONParser.members(Array("[1]".utf8).span)
        #expect(members == nil)
        #expect(throws: JSONParser.Fault.self) { _ = try JSONParser.members(Array("[1".utf8).span) }
    }
}
