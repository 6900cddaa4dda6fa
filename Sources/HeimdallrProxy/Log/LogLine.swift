import Logging
import Reactor
import WireText

/// One line of the log, for people or for programs.
///
/// A text line is `2026-03-01T09:05:07.012Z info listening address=127.0.0.1:8080`. A value is quoted and escaped if it
/// is empty, or has a space, `=`, `"`, `\` or an unprintable character. So no value can begin another line or field.
/// A JSON line (RFC 8259) has the members `time`, `level` and `message`, then the fields.
///
/// At a terminal the level is coloured, and the time and the names of fields are dimmed. No value can add a colour.
struct LogLine {
    enum Format: Sendable {
        case text, json
        /// Text with colours, for a terminal.
        case colored
    }

    private let format: Format
    private var bytes: [UInt8] = []

    init(_ format: Format, _ time: WallTime, level: String, message: String, capacity: Int = 160) {
        self.format = format
        bytes.reserveCapacity(capacity)
        if format == .json {
            beginJSON(time)
            bytes += ",\"level\":\"".utf8
            bytes += level.utf8
            bytes += "\",\"message\":".utf8
            quote(message.utf8)
            return
        }
        color(Color.faint)
        RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &bytes)
        color(Color.off)
        bytes.append(UInt8(ascii: " "))
        color(Color.of(level: level))
        bytes += level.utf8
        color(Color.off)
        bytes.append(UInt8(ascii: " "))
        Escaping.append(message.utf8, to: &bytes, style: .text)
    }

    /// A line of the audit stream: JSON without a level and a message.
    init(audit result: String, _ time: WallTime) {
        format = .json
        bytes.reserveCapacity(256)
        beginJSON(time)
        text("audit", result)
    }

    private mutating func beginJSON(_ time: WallTime) {
        bytes += "{\"time\":\"".utf8
        RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &bytes)
        bytes += "\"".utf8
    }

    mutating func end() -> [UInt8] {
        if format == .json { bytes.append(UInt8(ascii: "}")) }
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    // MARK: Fields of lines that an event loop builds byte by byte

    mutating func text(_ key: String, _ value: some Collection<UInt8>) {
        name(key)
        if format != .json, Escaping.isPlainWord(value) { bytes += value } else { quote(value) }
    }

    mutating func text(_ key: String, _ value: String?) {
        if let value { text(key, value.utf8) }
    }

    mutating func number(_ key: String, _ value: UInt64) {
        name(key)
        decimal(value)
    }

    mutating func flag(_ key: String, _ value: Bool) {
        name(key)
        bytes += (value ? "true" : "false").utf8
    }

    /// Appends a field in milliseconds with three decimal places. Does nothing for `nil`.
    mutating func milliseconds(_ key: String, _ duration: Duration?) {
        guard let duration else { return }
        let microseconds = UInt64(clamping: duration.wholeNanoseconds / 1000)
        number(key, microseconds / 1000)
        bytes.append(UInt8(ascii: "."))
        for divisor: UInt64 in [100, 10, 1] {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: microseconds / divisor % 10))
        }
    }

    private mutating func name(_ name: String) {
        guard format != .json else {
            bytes += ",\"".utf8
            bytes += name.utf8
            bytes += "\":".utf8
            return
        }
        bytes.append(UInt8(ascii: " "))
        color(Color.faint)
        bytes += name.utf8
        bytes.append(UInt8(ascii: "="))
        color(Color.off)
    }

    private mutating func decimal(_ value: UInt64) {
        let start = bytes.count
        var rest = value
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    private mutating func quote(_ text: some Collection<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        Escaping.append(text, to: &bytes, style: format == .json ? .json : .quotedText)
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func color(_ sequence: String) {
        if format == .colored { bytes += sequence.utf8 }
    }

    /// SGR sequences (ECMA-48, section 8.3.117). The terminal's theme defines their colours.
    private enum Color {
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
}

// Fields of swift-log, sorted by name.
extension LogLine {
    static func bytes(
        _ format: Format, time: WallTime, level: Logger.Level, message: String, fields: Logger.Metadata
    ) -> [UInt8] {
        var line = LogLine(format, time, level: level.rawValue, message: message)
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            guard format == .json else {
                line.append(name, value)
                continue
            }
            line.bytes.append(UInt8(ascii: ","))
            line.quote((["time", "level", "message"].contains(name) ? name + "_" : name).utf8)
            line.bytes.append(UInt8(ascii: ":"))
            json(value).write(.compact, escaping: .invisible) { line.bytes.append($0) }
        }
        return line.end()
    }

    private mutating func append(_ name: String, _ value: Logger.MetadataValue) {
        if case .dictionary(let members) = value {
            for (inner, value) in members.sorted(by: { $0.key < $1.key }) { append("\(name).\(inner)", value) }
            return
        }
        bytes.append(UInt8(ascii: " "))
        color(Color.faint)
        word(name)
        bytes.append(UInt8(ascii: "="))
        color(Color.off)
        word(value.description)
    }

    private mutating func word(_ word: String) {
        let isPlain = !word.isEmpty && word.unicodeScalars.allSatisfy(Escaping.isPlain)
        if isPlain { bytes += word.utf8 } else { quote(word.utf8) }
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
}
