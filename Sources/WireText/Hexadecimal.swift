extension Sequence<UInt8> {
    /// Two lower-case digits for each byte.
    public var hexadecimal: [UInt8] { flatMap { [ASCII.hexDigit($0 >> 4), ASCII.hexDigit($0 & 0x0F)] } }
}

extension FixedWidthInteger {
    /// The highest byte first.
    public var bigEndianBytes: [UInt8] {
        stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> $0) }
    }
}
