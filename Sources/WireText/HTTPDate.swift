/// RFC 9110 section 5.6.7: IMF-fixdate. The two obsolete forms are not read.
public enum HTTPDate {
    /// Since 1970-01-01T00:00:00Z, of `Sun, 06 Nov 1994 08:49:37 GMT`; `nil` for any other form, and for what is no day
    /// or no time of day. Which day of the week it says does not matter.
    public static func seconds(_ bytes: [UInt8]) -> Int64? {
        guard bytes.count == 29 else { return nil }
        let marks: KeyValuePairs<Int, String> = [3: ", ", 7: " ", 11: " ", 16: " ", 19: ":", 22: ":", 25: " GMT"]
        for (start, mark) in marks where !bytes[start...].starts(with: mark.utf8) { return nil }
        guard let day = number(bytes[5..<7]), let year = number(bytes[12..<16]), let hour = number(bytes[17..<19]),
            let minute = number(bytes[20..<22]), let second = number(bytes[23..<25]),
            let month = months.firstIndex(where: { $0.utf8.elementsEqual(bytes[8..<11]) }),
            year >= 1970, hour < 24, minute < 60, second <= 60
        else { return nil }
        let date = CivilDate(year: year, month: month + 1, day: day)
        let days = date.daysSince1970
        guard CivilDate(daysSince1970: days) == date else { return nil }
        return Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        var value = 0
        for digit in digits {
            guard ASCII.isDigit(digit) else { return nil }
            value = value * 10 + Int(digit - ASCII.zero)
        }
        return value
    }
}
