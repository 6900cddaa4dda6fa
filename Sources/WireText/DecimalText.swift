/// Numbers as text, without the C library's locale.
public enum DecimalText {
    /// Appends the last `digits` digits of a number, with leading zeros.
    static func append(_ number: Int, digits: Int, to output: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            output.append(ASCII.zero + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }

    /// - Returns: `nil` if a byte is not a digit.
    static func number(_ digits: some Sequence<UInt8>) -> Int? {
        var value = 0
        for digit in digits {
            guard ASCII.isDigit(digit) else { return nil }
            value = value * 10 + Int(digit - ASCII.zero)
        }
        return value
    }

    /// Writes at most three decimal places; `null` for infinite, NaN and huge values.
    public static func thousandths(_ value: Double) -> String {
        guard value.isFinite, value.magnitude < 1e15 else { return "null" }
        let scaled = Int((value * 1000).rounded())
        let (whole, rest) = scaled.magnitude.quotientAndRemainder(dividingBy: 1000)
        let sign = scaled < 0 ? "-" : ""
        guard rest > 0 else { return sign + String(whole) }
        var digits: [UInt8] = []
        append(Int(rest), digits: 3, to: &digits)
        while digits.last == ASCII.zero { digits.removeLast() }
        return "\(sign)\(whole).\(String(decoding: digits, as: UTF8.self))"
    }
}
