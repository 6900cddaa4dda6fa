/// RFC 9110 section 5.6.7: IMF-fixdate. The two obsolete forms are not read.
public enum HTTPDate {
    /// Seconds since 1970-01-01T00:00:00Z of `Sun, 06 Nov 1994 08:49:37 GMT`; `nil` for any other form, for an invalid
    /// day or time, and for a year before 1970. The day of the week is not checked.
    public static func seconds(_ bytes: [UInt8]) -> Int64? {
        guard bytes.count == 29 else { return nil }
        let marks: KeyValuePairs<Int, String> = [3: ", ", 7: " ", 11: " ", 16: " ", 19: ":", 22: ":", 25: " GMT"]
        for (start, mark) in marks where !bytes[start...].starts(with: mark.utf8) { return nil }
        guard let day = DecimalText.number(bytes[5..<7]), let year = DecimalText.number(bytes[12..<16]),
            let hour = DecimalText.number(bytes[17..<19]),
            let minute = DecimalText.number(bytes[20..<22]), let second = DecimalText.number(bytes[23..<25]),
            let month = months.firstIndex(where: { $0.utf8.elementsEqual(bytes[8..<11]) }),
            year >= 1970, hour < 24, minute < 60, second <= 60
        else { return nil }
        let date = CivilDate(year: year, month: month + 1, day: day)
        let days = date.daysSince1970
        guard CivilDate(daysSince1970: days) == date else { return nil }
        return Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    /// - Parameter seconds: since 1970-01-01T00:00:00Z.
    public static func text(_ seconds: Int) -> String {
        let days = seconds.flooredDivision(by: 86_400)
        let second = seconds - days * 86_400
        let date = CivilDate(daysSince1970: days)
        // 1970 began on a Thursday.
        let weekday = days - (days + 4).flooredDivision(by: 7) * 7 + 4
        var text = Array("\(weekdays[weekday]), ".utf8)
        func append(_ number: Int, _ digits: Int, _ mark: String) {
            DecimalText.append(number, digits: digits, to: &text)
            text += mark.utf8
        }
        append(date.day, 2, " \(months[date.month - 1]) ")
        append(date.year, 4, " ")
        append(second / 3600, 2, ":")
        append(second / 60 % 60, 2, ":")
        append(second % 60, 2, " GMT")
        return String(decoding: text, as: UTF8.self)
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
