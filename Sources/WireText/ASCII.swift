/// The ASCII bytes (RFC 20) and character classes that grammars use. Other bytes belong to no class.
///
/// Computed and inlinable: a constant of another module would be read through a call.
public enum ASCII {
    @inlinable public static var tab: UInt8 { 0x09 }
    @inlinable public static var lf: UInt8 { 0x0A }
    @inlinable public static var cr: UInt8 { 0x0D }
    @inlinable public static var space: UInt8 { 0x20 }
    @inlinable public static var quote: UInt8 { 0x22 }
    @inlinable public static var hash: UInt8 { 0x23 }
    @inlinable public static var percent: UInt8 { 0x25 }
    @inlinable public static var asterisk: UInt8 { 0x2A }
    @inlinable public static var plus: UInt8 { 0x2B }
    @inlinable public static var comma: UInt8 { 0x2C }
    @inlinable public static var hyphen: UInt8 { 0x2D }
    @inlinable public static var dot: UInt8 { 0x2E }
    @inlinable public static var slash: UInt8 { 0x2F }
    @inlinable public static var zero: UInt8 { 0x30 }
    @inlinable public static var nine: UInt8 { 0x39 }
    @inlinable public static var colon: UInt8 { 0x3A }
    @inlinable public static var semicolon: UInt8 { 0x3B }
    @inlinable public static var equals: UInt8 { 0x3D }
    @inlinable public static var question: UInt8 { 0x3F }
    @inlinable public static var at: UInt8 { 0x40 }
    @inlinable public static var leftBracket: UInt8 { 0x5B }
    @inlinable public static var backslash: UInt8 { 0x5C }
    @inlinable public static var rightBracket: UInt8 { 0x5D }
    @inlinable public static var underscore: UInt8 { 0x5F }
    @inlinable public static var leftBrace: UInt8 { 0x7B }
    @inlinable public static var rightBrace: UInt8 { 0x7D }
    @inlinable public static var tilde: UInt8 { 0x7E }

    @inlinable @inline(__always)
    public static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    @inlinable @inline(__always)
    public static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    @inlinable @inline(__always)
    public static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || isLetter(byte) }

    /// Space and tab.
    @inlinable @inline(__always)
    public static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Blanks and line ends.
    @inlinable @inline(__always)
    public static func isWhitespace(_ byte: UInt8) -> Bool { isBlank(byte) || byte == 0x0A || byte == 0x0D }

    @inlinable @inline(__always)
    public static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    /// The value of a hexadecimal digit in either case, 0 to 15; `nil` for any other byte.
    @inlinable @inline(__always)
    public static func hexValue(_ byte: UInt8) -> UInt8? {
        if isDigit(byte) { return byte &- 0x30 }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }

    /// The digit of a value below 16.
    @inlinable @inline(__always)
    public static func hexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    @inlinable @inline(__always)
    public static func hexDigitUppercased(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }

    /// Compares names of fields, schemes and the like, where Unicode's rules would be wrong.
    public static func equalIgnoringCase(_ one: some StringProtocol, _ other: some StringProtocol) -> Bool {
        one.utf8.elementsEqual(other.utf8) { lowercased($0) == lowercased($1) }
    }

    // MARK: RFC 9110

    /// `tchar`, section 5.6.2.
    @inlinable @inline(__always)
    public static func isTokenByte(_ byte: UInt8) -> Bool {
        // One bit for each byte: 0x00 to 0x3F, then 0x40 to 0x7F.
        let bits: UInt64 = byte < 0x40 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 0x80 && bits >> UInt64(byte & 0x3F) & 1 != 0
    }

    /// `token`, section 5.6.2.
    public static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isTokenByte($0) }
    }

    /// A field value, section 5.5: visible characters, spaces and `obs-text`.
    /// - Parameter allowingTabs: section 5.5 allows tabs; some parsers reject them.
    public static func isFieldValue(_ text: some StringProtocol, allowingTabs: Bool) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || allowingTabs && $0 == 0x09 }
    }
}
