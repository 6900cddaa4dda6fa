import Testing
import WireText

@Suite struct `Times of RFC 3339` {
    @Test(
        "times of RFC 3339 are read in any zone, without their fractions",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-03-01T09:05:07Z", 1_772_355_907),
            ("2026-03-01t09:05:07.123456z", 1_772_355_907), ("2026-03-01T10:05:07+01:00", 1_772_355_907),
            ("2026-02-28T23:35:07-09:30", 1_772_355_907), ("2024-02-29T12:00:00Z", 1_709_208_000),
        ])
    func read(_ text: String, _ seconds: Int) {
        #expect(RFC3339.seconds(text) == seconds)
    }

    @Test(
        "a text that is no time of RFC 3339 is refused",
        arguments: [
            "", "2026-03-01", "2026-03-01T09:05:07", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
            "2026-03-01T24:00:00Z", "2026-03-01T09:60:00Z", "2026-03-01T09:05:07.Z", "2026-03-01T09:05:07+0100",
            "2026-03-01T09:05:07+25:00", "2026-03-01T09:05:07ZZ", "2026-03-01X09:05:07Z", "20260301T090507Z00000",
            "２026-03-01T09:05:07Z",
        ])
    func refused(_ text: String) {
        #expect(RFC3339.seconds(text) == nil)
    }
}
