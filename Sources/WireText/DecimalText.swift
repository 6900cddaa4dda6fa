/// Numbers as text, without the C library's locale.
public enum DecimalText {
    /// At most three decimal places; `null` for infinite, NaN and huge values.
    public static func thousandths(_ value: Double) -> String {
        guard value.isFinite, value.magnitude < 1e15 else { return "null" }
        let scaled = Int((value * 1000).rounded())
        let (whole, rest) = scaled.magnitude.quotientAndRemainder(dividingBy: 1000)
        let sign = scaled < 0 ? "-" : ""
        guard rest > 0 else { return sign + String(whole) }
        var digits = String(rest)
        digits = String(repeating: "0", count: 3 - digits.count) + digits
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(sign)\(whole).\(digits)"
    }
}
