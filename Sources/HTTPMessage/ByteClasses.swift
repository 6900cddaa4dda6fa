import WireText

/// The character classes of HTTP as one table, used for every byte of every head.
extension ASCII {
    /// `tchar` of RFC 9110 5.6.2.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool { classes[Int(byte)] & 1 != 0 }

    /// Whether the byte may be in a field value (RFC 9110 5.5): visible characters, space, tab, obs-text.
    @inline(__always)
    static func isFieldValue(_ byte: UInt8) -> Bool { classes[Int(byte)] & 2 != 0 }

    @inline(__always)
    static func isHexDigit(_ byte: UInt8) -> Bool { classes[Int(byte)] & 8 != 0 }

    /// The end of the token that begins at `index`.
    @inline(__always)
    static func endOfToken(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 1, bytes, index) }

    /// The end of a run of target bytes: 0x21 to 0x7E without `#` and `\`. `RequestTarget` gives the reasons.
    @inline(__always)
    static func endOfTarget(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 4, bytes, index) }

    @inline(__always)
    package static func endOfFieldValue(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 2, bytes, index) }

    /// The end of a run of host name bytes: letters, digits, hyphen, dot, underscore.
    @inline(__always)
    static func endOfHostName(_ bytes: Span<UInt8>, _ index: Int) -> Int { end(of: 16, bytes, index) }

    /// Packs `count` bytes, at most eight, with the first byte highest and bit 0x20 set in each. This folds the case of
    /// letters. No other visible byte becomes a letter, a digit, a hyphen, `:` or `/`.
    @inline(__always)
    static func folded(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<count { word = word << 8 | UInt64(bytes[start &+ offset] | 0x20) }
        return word
    }

    @inline(__always)
    private static func end(of mask: UInt8, _ bytes: Span<UInt8>, _ start: Int) -> Int {
        // With this guard the compiler merges the loop's condition and the bounds check into one comparison.
        guard start >= 0 else { return 0 }
        var index = start
        while index < bytes.count, classes[Int(bytes[index])] & mask != 0 { index += 1 }
        return index
    }

    // One bit for each class: 1 token, 2 field value, 4 target, 8 hexadecimal digit, 16 host name.
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
