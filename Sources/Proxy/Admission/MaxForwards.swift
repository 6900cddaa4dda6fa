/// The value of Max-Forwards (RFC 9110, section 7.6.2).
enum MaxForwards {
    /// - Returns: the number, at most 2^32.
    /// - Throws: `Problem.badMaxForwards` for anything but a number.
    static func read(_ digits: Span<UInt8>) throws(Problem) -> UInt64 {
        guard !digits.isEmpty else { throw Problem(.badMaxForwards) }
        var number: UInt64 = 0
        for index in digits.indices {
            let digit = digits[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { throw Problem(.badMaxForwards) }
            number = min(number * 10 + UInt64(digit), 1 << 32)
        }
        return number
    }
}
