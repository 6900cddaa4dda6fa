import Logging

/// One line of the log, as people read it or as programs do.
///
/// Text is `2026-03-01T09:05:07.012Z info listening address=127.0.0.1:8080`: a value with a space, a quote or anything
/// unprintable stands in quotes with escapes, so that no value can begin a line or a field of its own. JSON (RFC 8259)
/// has the members `time`, `level` and `message`, then the fields.
enum LogLine {
    enum Format: Sendable { case text, json }

    static func bytes(
        _ format: Format, time: WallTime, level: Logger.Level, message: String, fields: Logger.Metadata
    ) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(160)
        let ordered = fields.sorted { $0.key < $1.key }
        switch format {
        case .text:
            Timestamp.append(time, to: &line)
            line += " \(level.rawValue) ".utf8
            Escaping.append(message, to: &line, style: .text)
            for (name, value) in ordered { appendText(name, value, to: &line) }
        case .json:
            line += "{\"time\":\"".utf8
            Timestamp.append(time, to: &line)
            line += "\",\"level\":\"\(level.rawValue)\",\"message\":".utf8
            appendJSONString(message, to: &line)
            for (name, value) in ordered {
                line.append(UInt8(ascii: ","))
                appendJSONString(["time", "level", "message"].contains(name) ? name + "_" : name, to: &line)
                line.append(UInt8(ascii: ":"))
                appendJSON(value, to: &line)
            }
            line.append(UInt8(ascii: "}"))
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private static func appendText(_ name: String, _ value: Logger.MetadataValue, to line: inout [UInt8]) {
        if case .dictionary(let members) = value {
            for (inner, value) in members.sorted(by: { $0.key < $1.key }) {
                appendText("\(name).\(inner)", value, to: &line)
            }
            return
        }
        line.append(UInt8(ascii: " "))
        appendTextWord(name, to: &line)
        line.append(UInt8(ascii: "="))
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

    private static func appendJSON(_ value: Logger.MetadataValue, to line: inout [UInt8]) {
        switch value {
        case .string(let text): appendJSONString(text, to: &line)
        case .stringConvertible(let convertible):
            switch convertible {
            case let number as any FixedWidthInteger: line += "\(number)".utf8
            case let truth as Bool: line += "\(truth)".utf8
            default: appendJSONString(convertible.description, to: &line)
            }
        case .array(let values):
            line.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { line.append(UInt8(ascii: ",")) }
                appendJSON(value, to: &line)
            }
            line.append(UInt8(ascii: "]"))
        case .dictionary(let members):
            line.append(UInt8(ascii: "{"))
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { line.append(UInt8(ascii: ",")) }
                appendJSONString(member.key, to: &line)
                line.append(UInt8(ascii: ":"))
                appendJSON(member.value, to: &line)
            }
            line.append(UInt8(ascii: "}"))
        }
    }

    private static func appendJSONString(_ text: String, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        Escaping.append(text, to: &line, style: .json)
        line.append(UInt8(ascii: "\""))
    }
}

/// Keeps what others sent from acting as more than text in a terminal or a log.
enum Escaping {
    enum Style { case text, quotedText, json }

    /// Can stand in a text line without quotes.
    static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case " ", "\"", "\\", "=": false
        default: !isHidden(scalar)
        }
    }

    /// Control characters, line and paragraph separators, and what reorders or hides the text around it.
    static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    static func append(_ text: String, to line: inout [UInt8], style: Style) {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"" where style != .text, "\\" where style != .text:
                line.append(UInt8(ascii: "\\"))
                line.append(UInt8(truncatingIfNeeded: scalar.value))
            case "\n": line += "\\n".utf8
            case "\r": line += "\\r".utf8
            case "\t": line += "\\t".utf8
            case _ where isHidden(scalar):
                if style == .json {
                    for unit in String(scalar).utf16 { line += "\\u\(hexadecimal(UInt32(unit), digits: 4))".utf8 }
                } else {
                    line += "\\u{\(hexadecimal(scalar.value, digits: 1))}".utf8
                }
            default: line += String(scalar).utf8
            }
        }
    }

    private static func hexadecimal(_ value: UInt32, digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
