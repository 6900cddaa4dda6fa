import WireText

/// Identifier of a trace: 16 bytes, never all zero (W3C Trace Context, section 3.2.2.3).
package struct TraceID: Sendable, Hashable {
    package let high: UInt64
    package let low: UInt64

    /// `nil` for the invalid all-zero identifier.
    package init?(high: UInt64, low: UInt64) {
        guard high | low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// Creates a random identifier.
    init() { (high, low) = (.random(in: .min ... .max), .random(in: 1 ... .max)) }

    /// The identifier as 32 hexadecimal digits.
    package var text: [UInt8] { [high, low].flatMap(\.bigEndianBytes.hexadecimal) }
}
