/// ISO 8601 in UTC with milliseconds: `2026-03-01T09:05:07.012Z`.
enum Timestamp {
    static func append(_ time: WallTime, to line: inout [UInt8]) {
        let days = time.seconds.flooredDivision(by: 86_400)
        let second = time.seconds - days * 86_400
        let date = civil(daysSince1970: days)
        append(date.year, digits: 4, to: &line)
        line.append(UInt8(ascii: "-"))
        append(date.month, digits: 2, to: &line)
        line.append(UInt8(ascii: "-"))
        append(date.day, digits: 2, to: &line)
        line.append(UInt8(ascii: "T"))
        append(second / 3600, digits: 2, to: &line)
        line.append(UInt8(ascii: ":"))
        append(second / 60 % 60, digits: 2, to: &line)
        line.append(UInt8(ascii: ":"))
        append(second % 60, digits: 2, to: &line)
        line.append(UInt8(ascii: "."))
        append(time.nanoseconds / 1_000_000, digits: 3, to: &line)
        line.append(UInt8(ascii: "Z"))
    }

    /// The proleptic Gregorian date. Counted in eras of 400 years that begin on 1 March, so that the leap day is the
    /// last of its year.
    static func civil(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = shifted.flooredDivision(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func append(_ number: Int, digits: Int, to line: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }
}

extension Int {
    fileprivate func flooredDivision(by divisor: Int) -> Int {
        let quotient = self / divisor
        return quotient * divisor > self ? quotient - 1 : quotient
    }
}
