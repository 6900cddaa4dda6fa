/// Times in the form of RFC 3339, in UTC: `2026-03-01T09:05:07Z`.
public enum RFC3339 {
    /// - Parameters:
    ///   - seconds: since 1970-01-01T00:00:00Z.
    ///   - milliseconds: 0 to 999, written as a fraction; `nil` for none.
    public static func append(_ seconds: Int, milliseconds: Int? = nil, to output: inout [UInt8]) {
        let days = seconds.flooredDivision(by: 86_400)
        let second = seconds - days * 86_400
        let date = CivilDate(daysSince1970: days)
        DecimalText.append(date.year, digits: 4, to: &output)
        output.append(ASCII.hyphen)
        DecimalText.append(date.month, digits: 2, to: &output)
        output.append(ASCII.hyphen)
        DecimalText.append(date.day, digits: 2, to: &output)
        output.append(UInt8(ascii: "T"))
        DecimalText.append(second / 3600, digits: 2, to: &output)
        output.append(ASCII.colon)
        DecimalText.append(second / 60 % 60, digits: 2, to: &output)
        output.append(ASCII.colon)
        DecimalText.append(second % 60, digits: 2, to: &output)
        if let milliseconds {
            output.append(ASCII.dot)
            DecimalText.append(milliseconds, digits: 3, to: &output)
        }
        output.append(UInt8(ascii: "Z"))
    }

    public static func text(_ seconds: Int, milliseconds: Int? = nil) -> String {
        var output: [UInt8] = []
        append(seconds, milliseconds: milliseconds, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Returns the seconds since 1970 of text like `2026-03-01T09:05:07Z`; `nil` for other text. Accepts an offset, and
    /// a fraction, which is dropped.
    public static func seconds(_ text: String) -> Int? {
        var rest = Array(text.utf8)[...]
        func number(_ digits: Int, then mark: UInt8?) -> Int? {
            guard rest.count >= digits, let value = DecimalText.number(rest.prefix(digits)) else { return nil }
            rest = rest.dropFirst(digits)
            guard let mark else { return value }
            guard let found = rest.popFirst(), ASCII.lowercased(found) == ASCII.lowercased(mark) else { return nil }
            return value
        }
        guard let year = number(4, then: ASCII.hyphen), let month = number(2, then: ASCII.hyphen),
            let day = number(2, then: UInt8(ascii: "T")), let hour = number(2, then: ASCII.colon),
            let minute = number(2, then: ASCII.colon), let second = number(2, then: nil), (1...12).contains(month),
            (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        if rest.first == ASCII.dot {
            rest = rest.dropFirst()
            guard let first = rest.first, ASCII.isDigit(first) else { return nil }
            while let byte = rest.first, ASCII.isDigit(byte) { rest = rest.dropFirst() }
        }
        let date = CivilDate(year: year, month: month, day: day)
        guard CivilDate(daysSince1970: date.daysSince1970) == date, let zone = rest.popFirst() else { return nil }
        let local = date.daysSince1970 * 86_400 + hour * 3600 + minute * 60 + second
        if ASCII.lowercased(zone) == UInt8(ascii: "z") { return rest.isEmpty ? local : nil }
        guard zone == ASCII.plus || zone == ASCII.hyphen, let hours = number(2, then: ASCII.colon),
            let minutes = number(2, then: nil), rest.isEmpty, hours < 24, minutes < 60
        else { return nil }
        let offset = hours * 3600 + minutes * 60
        return zone == ASCII.plus ? local - offset : local + offset
    }
}
