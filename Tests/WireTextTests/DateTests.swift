import Testing
import WireText

@Suite struct `Dates` {
    @Test("a date in IMF-fixdate is read as its second")
    func httpDate() {
        for (text, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 23:59:60 GMT", 951_868_800), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] as [(String, Int64)] {
            #expect(HTTPDate.seconds(Array(text.utf8)) == seconds)
            // A leap second is read, and never written.
            if !text.contains(":60") { #expect(HTTPDate.text(Int(seconds)) == text) }
        }
    }

    @Test(
        "a date in another form or zone, or of a day that does not exist, is refused",
        arguments: [
            "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 31 Feb 2023 08:49:37 GMT", "Wed, 29 Feb 2023 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1969 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 08:49:37 GMTx",
            "Sun, 06 Nov 1994 08:49:3é GMT",
        ])
    func badHTTPDate(text: String) {
        #expect(HTTPDate.seconds(Array(text.utf8)) == nil)
    }

    @Test("times are written as in RFC 3339, before 1970 too")
    func rfc3339() {
        #expect(RFC3339.text(1_772_355_907, milliseconds: 12) == "2026-03-01T09:05:07.012Z")
        #expect(RFC3339.text(1_772_355_907) == "2026-03-01T09:05:07Z")
        #expect(RFC3339.text(-1) == "1969-12-31T23:59:59Z")
        #expect(RFC3339.text(4_107_542_399) == "2100-02-28T23:59:59Z")
        #expect(RFC3339.text(4_107_542_400, milliseconds: 0) == "2100-03-01T00:00:00.000Z")
        #expect(RFC3339.text(951_782_400, milliseconds: 999) == "2000-02-29T00:00:00.999Z")
    }

    @Test("days and dates are the same count, over 800 years")
    func calendar() {
        var expected = CivilDate(year: 1600, month: 1, day: 1)
        let first = expected.daysSince1970
        #expect(first == -135_140)
        for day in first..<(first + 800 * 366) {
            guard CivilDate(daysSince1970: day) == expected, expected.daysSince1970 == day else {
                Issue.record("\(day): \(CivilDate(daysSince1970: day)), not \(expected)")
                return
            }
            let isLeap = expected.year % 4 == 0 && (expected.year % 100 != 0 || expected.year % 400 == 0)
            let length = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][expected.month - 1]
            expected.day += 1
            if expected.day > length { (expected.day, expected.month) = (1, expected.month + 1) }
            if expected.month > 12 { (expected.month, expected.year) = (1, expected.year + 1) }
        }
    }
}
