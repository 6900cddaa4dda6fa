/// A day of the proleptic Gregorian calendar.
public struct CivilDate: Sendable, Equatable {
    public var year: Int
    /// 1 to 12
    public var month: Int
    /// 1 to 31
    public var day: Int

    public init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// Counts in eras of 400 years that begin on 1 March, so that the leap day is the last day of its year.
    public init(daysSince1970 days: Int) {
        let shifted = days + Self.daysToEpoch
        let era = shifted.flooredDivision(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    public var daysSince1970: Int {
        let marchYear = month <= 2 ? year - 1 : year
        let era = marchYear.flooredDivision(by: 400)
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - Self.daysToEpoch
    }

    /// Days from 1 March of the year 0 to 1 January 1970.
    private static let daysToEpoch = 719_468
}

extension Int {
    func flooredDivision(by divisor: Int) -> Int {
        let quotient = self / divisor
        return quotient * divisor > self ? quotient - 1 : quotient
    }
}
