import Logging
import Reactor
import WireText

/// One line of the log, for people or for programs.
///
/// Text is `2026-03-01T09:05:07.012Z info listening address=127.0.0.1:8080`. A value with a space, a quote or an
/// unprintable character is quoted and escaped, so that no value can begin another line or field. JSON (RFC 8259) has
/// the members `time`, `level` and `message`, then the fields.
///
/// At a terminal the level is coloured, and time and names are dimmed. No value can add a colour.
enum LogLine {
    enum Format: Sendable {
        case text, json
        /// Text with colours, for a terminal.
        case colored
    }

    static func bytes(
        _ format: Format, time: WallTime, level: Logger.Level, message: String, fields: Logger.Metadata
    ) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(160)
        begin(&line, format, time: time, level: level.rawValue, message: message)
        let ordered = fields.sorted { $0.key < $1.key }
        switch format {
        case .text, .colored:
            for (name, value) in ordered { appendText(name, value, format, to: &line) }
        case .json:
            for (name, value) in ordered {
                line.append(UInt8(ascii: ","))
                appendJSONString(["time", "level", "message"].contains(name) ? name + "_" : name, to: &line)
                line.append(UInt8(ascii: ":"))
                json(value).write(.compact, escaping: .invisible) { line.append($0) }
            }
        }
        end(&line, format)
        return line
    }

    static func begin(_ line: inout [UInt8], _ format: Format, time: WallTime, level: String, message: String) {
        switch format {
        case .text:
            RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &line)
            line.append(UInt8(ascii: " "))
            line += level.utf8
            line.append(UInt8(ascii: " "))
            Escaping.append(message, to: &line, style: .text)
        case .colored:
            line += Color.faint.utf8
            RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &line)
            line += Color.off.utf8
            line.append(UInt8(ascii: " "))
            line += Color.of(level: level).utf8
            line += level.utf8
            line += Color.off.utf8
            line.append(UInt8(ascii: " "))
            Escaping.append(message, to: &line, style: .text)
        case .json:
            line += "{\"time\":\"".utf8
            RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &line)
            line += "\",\"level\":\"".utf8
            line += level.utf8
            line += "\",\"message\":".utf8
            appendJSONString(message, to: &line)
        }
    }

    static func end(_ line: inout [UInt8], _ format: Format) {
        if format == .json { line.append(UInt8(ascii: "}")) }
        line.append(UInt8(ascii: "\n"))
    }

    private static func appendText(
        _ name: String, _ value: Logger.MetadataValue, _ format: Format, to line: inout [UInt8]
    ) {
        if case .dictionary(let members) = value {
            for (inner, value) in members.sorted(by: { $0.key < $1.key }) {
                appendText("\(name).\(inner)", value, format, to: &line)
            }
            return
        }
        line.append(UInt8(ascii: " "))
        if format == .colored { line += Color.faint.utf8 }
        appendTextWord(name, to: &line)
        line.append(UInt8(ascii: "="))
        if format == .colored { line += Color.off.utf8 }
        appendTextWord(value.description, to: &line)
    }

    private static func appendTextWord(_ word: String, to line: inout [UInt8]) {
        guard word.isEmpty || !word.unicodeScalars.allSatisfy(Escaping.isPlain) else {
            line += word.utf8
            return
        }
        line.append(UInt8(ascii: "\""))
        Escaping.append(word, to: &line, style: .quotedText)
        line.append(UInt8(ascii: "\""))
    }

    private static func json(_ value: Logger.MetadataValue) -> JSON {
        switch value {
        case .string(let text): .string(text)
        case .stringConvertible(let convertible):
            switch convertible {
            case let seconds as LogSeconds: .literal("\(seconds.count)")
            case let number as any FixedWidthInteger: .literal("\(number)")
            case let truth as Bool: .bool(truth)
            default: .string(convertible.description)
            }
        case .array(let values): .array(values.map { json($0) })
        case .dictionary(let members):
            .object(members.sorted { $0.key < $1.key }.map { JSON.Member($0.key, json($0.value)) })
        }
    }

    /// SGR sequences (ECMA-48, section 8.3.117): the eight colours of every terminal, in its own theme.
    enum Color {
        static let off = "\u{1B}[0m"
        static let faint = "\u{1B}[2m"

        static func of(level: String) -> String {
            switch level {
            case "error", "critical": "\u{1B}[1;31m"
            case "warning": "\u{1B}[33m"
            case "notice": "\u{1B}[36m"
            case "info": "\u{1B}[32m"
            default: faint
            }
        }
    }

    private static func appendJSONString(_ text: String, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        Escaping.append(text, to: &line, style: .json)
        line.append(UInt8(ascii: "\""))
    }
}
