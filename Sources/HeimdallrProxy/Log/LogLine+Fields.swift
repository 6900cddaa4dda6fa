import Reactor

// Fields written byte by byte, without a dictionary or a sort, for lines made on a loop.
extension LogLine {
    static func text(_ key: String, _ value: [UInt8], _ line: inout [UInt8], _ format: Format) {
        name(key, &line, format)
        if format != .json, Escaping.isPlainWord(value) {
            line += value
            return
        }
        line.append(UInt8(ascii: "\""))
        Escaping.append(value, to: &line, style: format == .json ? .json : .quotedText)
        line.append(UInt8(ascii: "\""))
    }

    static func text(_ key: String, _ value: String?, _ line: inout [UInt8], _ format: Format) {
        guard let value else { return }
        name(key, &line, format)
        if format != .json, Escaping.isPlainWord(value.utf8) {
            line += value.utf8
            return
        }
        line.append(UInt8(ascii: "\""))
        Escaping.append(value, to: &line, style: format == .json ? .json : .quotedText)
        line.append(UInt8(ascii: "\""))
    }

    static func number(_ key: String, _ value: UInt64, _ line: inout [UInt8], _ format: Format) {
        name(key, &line, format)
        decimal(value, &line)
    }

    static func milliseconds(
        _ key: String, _ duration: Duration?, _ line: inout [UInt8], _ format: Format
    ) {
        guard let duration else { return }
        name(key, &line, format)
        milliseconds(UInt64(clamping: duration.wholeNanoseconds / 1000), &line)
    }

    static func name(_ name: String, _ line: inout [UInt8], _ format: Format) {
        switch format {
        case .text:
            line.append(UInt8(ascii: " "))
            line += name.utf8
            line.append(UInt8(ascii: "="))
        case .colored:
            line.append(UInt8(ascii: " "))
            line += Color.faint.utf8
            line += name.utf8
            line.append(UInt8(ascii: "="))
            line += Color.off.utf8
        case .json:
            line += ",\"".utf8
            line += name.utf8
            line += "\":".utf8
        }
    }

    private static func decimal(_ value: UInt64, _ line: inout [UInt8]) {
        let start = line.count
        var rest = value
        repeat {
            line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        line[start...].reverse()
    }

    /// Three decimal places.
    private static func milliseconds(_ microseconds: UInt64, _ line: inout [UInt8]) {
        decimal(microseconds / 1000, &line)
        line.append(UInt8(ascii: "."))
        for divisor: UInt64 in [100, 10, 1] {
            line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: microseconds / divisor % 10))
        }
    }
}
