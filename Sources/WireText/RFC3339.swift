/// Times as RFC 3339 writes them, in UTC: `2026-03-01T09:05:07Z`.
public enum RFC3339 {
    /// - Parameters:
    ///   - seconds: since 1970-01-01T00:00:00Z.
    ///   - milliseconds: 0 to 999, written behind a point; `nil`: not written.
    public static func append(_ seconds: Int, milliseconds: Int? = nil, to output: inout [UInt8]) {
        let days = seconds.flooredDivision(by: 86_400)
        let second = seconds - days * 86_400
        let date = CivilDate(daysSince1970: days)
        append(date.year, digits: 4, to: &output)
        output.append(ASCII.hyphen)
        append(date.month, digits: 2, to: &output)
        output.append(ASCII.hyphen)
        append(date.day, digits: 2, to: &output)
        output.append(UInt8(ascii: "T"))
        append(second / 3600, digits: 2, to: &output)
        output.append(ASCII.colon)
        append(second / 60 % 60, digits: 2, to: &output)
        output.append(ASCII.colon)
        append(second % 60, digits: 2, to: &output)
        if let milliseconds {
            output.append(ASCII.dot)
            append(milliseconds, digits: 3, to: &output)
        }
        output.append(UInt8(ascii: "Z"))
    }

    public static func text(_ seconds: Int, milliseconds: Int? = nil) -> String {
        var output: [UInt8] = []
        append(seconds, milliseconds: milliseconds, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    private static func append(_ number: Int, digits: Int, to output: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            output.append(ASCII.zero + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }
}
