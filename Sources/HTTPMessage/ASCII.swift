/// The bytes that HTTP's grammar is made of, and the classes its rules speak of.
public enum ASCII {
    static let tab: UInt8 = 0x09
    static let lf: UInt8 = 0x0A
    static let cr: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote: UInt8 = 0x22
    static let hash: UInt8 = 0x23
    static let percent: UInt8 = 0x25
    static let asterisk: UInt8 = 0x2A
    static let comma: UInt8 = 0x2C
    static let hyphen: UInt8 = 0x2D
    static let dot: UInt8 = 0x2E
    static let slash: UInt8 = 0x2F
    static let zero: UInt8 = 0x30
    static let nine: UInt8 = 0x39
    static let colon: UInt8 = 0x3A
    static let semicolon: UInt8 = 0x3B
    static let equals: UInt8 = 0x3D
    static let question: UInt8 = 0x3F
    static let at: UInt8 = 0x40
    static let leftBracket: UInt8 = 0x5B
    static let backslash: UInt8 = 0x5C
    static let rightBracket: UInt8 = 0x5D
    static let underscore: UInt8 = 0x5F
    static let tilde: UInt8 = 0x7E

    /// `tchar` of RFC 9110 5.6.2.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool { classes[Int(byte)] & 1 != 0 }

    /// What a field value may hold (RFC 9110 5.5): visible characters, space, tab, obs-text.
    @inline(__always)
    static func isFieldValue(_ byte: UInt8) -> Bool { classes[Int(byte)] & 2 != 0 }

    /// What a request target may hold: 0x21 to 0x7E without `#` and `\`. See `RequestTarget` for the reasons.
    @inline(__always)
    static func isTarget(_ byte: UInt8) -> Bool { classes[Int(byte)] & 4 != 0 }

    @inline(__always)
    static func isHexDigit(_ byte: UInt8) -> Bool { classes[Int(byte)] & 8 != 0 }

    /// What a host name may hold here: letters, digits, hyphen, dot, underscore.
    @inline(__always)
    static func isHostName(_ byte: UInt8) -> Bool { classes[Int(byte)] & 16 != 0 }

    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool { byte &- zero < 10 }

    @inline(__always)
    static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 0x20) &- 0x61 < 26 }

    @inline(__always)
    static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    @inline(__always)
    static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    /// The value of a hexadecimal digit, 0 to 15; `nil` for any other byte.
    @inline(__always)
    public static func hexValue(_ byte: UInt8) -> UInt8? {
        if isDigit(byte) { return byte &- zero }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }

    /// The end of the token bytes that begin at `index`.
    @inline(__always)
    static func endOfToken(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 1, bytes, index) }

    @inline(__always)
    static func endOfTarget(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 4, bytes, index) }

    @inline(__always)
    static func endOfFieldValue(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 2, bytes, index) }

    @inline(__always)
    static func endOfHostName(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 16, bytes, index) }

    /// `count` bytes, at most eight, packed with the first in the highest place and bit 0x20 set: folds the letters
    /// and, among visible bytes, maps nothing else onto a letter, a digit, a hyphen, `:` or `/`.
    @inline(__always)
    static func folded(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<count { word = word << 8 | UInt64(bytes[start &+ offset] | 0x20) }
        return word
    }

    @inline(__always)
    private static func end(of mask: UInt8, _ bytes: Span<UInt8>, _ start: Int) -> Int {
        // Knowing this, the compiler makes one comparison of the loop's condition and the bounds check.
        guard start >= 0 else { return 0 }
        var index = start
        while index < bytes.count, classes[Int(bytes[index])] & mask != 0 { index += 1 }
        return index
    }

    // One bit a class: 1 token, 2 field value, 4 target, 8 hexadecimal digit, 16 host name.
    // swift-format-ignore
    private static let classes: InlineArray<256, UInt8> = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        2, 7, 6, 3, 7, 7, 7, 7, 6, 6, 7, 7, 6, 23, 23, 6,
        31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 6, 6, 6, 6, 6, 6,
        6, 31, 31, 31, 31, 31, 31, 23, 23, 23, 23, 23, 23, 23, 23, 23,
        23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 6, 2, 6, 7, 23,
        7, 31, 31, 31, 31, 31, 31, 23, 23, 23, 23, 23, 23, 23, 23, 23,
        23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 6, 7, 6, 7, 0,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
        2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    ]
}
