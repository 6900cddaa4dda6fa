import Foundation
import Logging
import Reactor
import Testing
import WireText

@testable import HeimdallrProxy

@Suite struct LogLineTests {
    let time = WallTime(seconds: 1_772_355_907, nanoseconds: 12_999_999)

    private func text(_ message: String, _ fields: Logger.Metadata = [:]) -> String {
        String(
            decoding: LogLine.bytes(.text, time: time, level: .info, message: message, fields: fields), as: UTF8.self)
    }

    private func json(_ message: String, _ fields: Logger.Metadata = [:]) throws -> [String: Any] {
        let bytes = LogLine.bytes(.json, time: time, level: .warning, message: message, fields: fields)
        #expect(bytes.last == UInt8(ascii: "\n"))
        #expect(bytes.dropLast().allSatisfy { $0 >= 0x20 })
        return try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    }

    @Test func `text is a time, a level, a sentence and fields in the order of their names`() {
        #expect(
            text("listening", ["port": .stringConvertible(8080), "address": "127.0.0.1"])
                == "2026-03-01T09:05:07.012Z info listening address=127.0.0.1 port=8080\n")
    }

    @Test func `a value with blanks, quotes, equal signs or nothing stands in quotes`() {
        let line = text("m", ["a": "two words", "b": "say \"hi\"", "c": "x=y", "d": "", "e": "back\\slash"])
        #expect(line.hasSuffix(#" m a="two words" b="say \"hi\"" c="x=y" d="" e="back\\slash""# + "\n"))
    }

    @Test(arguments: [
        "a\nb", "a\r\nb", "a\u{85}b", "a\u{2028}b", "a\u{2029}b", "\u{1B}[2Jb", "\u{202E}b", "a\u{0}b", "a\u{7F}b",
        "a\u{9B}2Jb",
    ])
    func `no value, name or message can begin a line or move the terminal`(hostile: String) throws {
        let line = text(hostile, ["field": .string(hostile), hostile: "x", "list": [.string(hostile)]])
        #expect(line.last == "\n")
        #expect(!line.unicodeScalars.dropLast().contains { $0.isInvisible })
        let object = try json(hostile, ["field": .string(hostile), hostile: "x"])
        #expect(object["message"] as? String == hostile)
        #expect(object["field"] as? String == hostile)
        #expect(object[hostile] as? String == "x")
    }

    @Test func `a forged field stays inside its value`() {
        let line = text("request", ["path": "/x status=200", "user": "a\" status=\"200"])
        #expect(line.hasSuffix(#" request path="/x status=200" user="a\" status=\"200""# + "\n"))
    }

    @Test func `text beyond ASCII stays readable`() {
        #expect(text("Grüße", ["name": "日本"]).hasSuffix(" Grüße name=日本\n"))
    }

    @Test func `JSON has time, level and message, numbers as numbers, and nested fields`() throws {
        let object = try json(
            "served",
            [
                "status": .stringConvertible(200), "ok": .stringConvertible(true), "path": "/a\"b",
                "list": ["x", "y"], "inner": ["key": "value"], "level": "mine",
            ])
        #expect(object["time"] as? String == "2026-03-01T09:05:07.012Z")
        #expect(object["level"] as? String == "warning")
        #expect(object["message"] as? String == "served")
        #expect(object["status"] as? Int == 200)
        #expect(object["ok"] as? Bool == true)
        #expect(object["path"] as? String == "/a\"b")
        #expect(object["list"] as? [String] == ["x", "y"])
        #expect(object["inner"] as? [String: String] == ["key": "value"])
        #expect(object["level_"] as? String == "mine")
    }

    @Test func `nested fields become dotted names in text`() {
        #expect(text("m", ["a": ["b": "c", "d": ["e": "f"]]]).hasSuffix(" m a.b=c a.d.e=f\n"))
    }

    @Test func `colours are those of a terminal, and no value brings its own`() {
        func line(_ level: Logger.Level) -> String {
            String(
                decoding: LogLine.bytes(
                    .colored, time: time, level: level, message: "m\u{1B}[31m", fields: ["a": "x\u{1B}[31my"]),
                as: UTF8.self)
        }
        let faint = "\u{1B}[2m"
        let off = "\u{1B}[0m"
        let rest = #"m\u{1b}[31m \#(faint)a=\#(off)"x\u{1b}[31my""# + "\n"
        #expect(line(.error) == "\(faint)2026-03-01T09:05:07.012Z\(off) \u{1B}[1;31merror\(off) \(rest)")
        let levels: [Logger.Level] = [.error, .warning, .notice, .info, .debug]
        #expect(Set(levels.map { line($0).replacing($0.rawValue, with: "") }).count == levels.count)
    }
}
