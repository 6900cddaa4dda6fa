import WireText

/// Names a whole trace: 16 bytes, never all zero (W3C Trace Context, section 3.2.2.3).
package struct TraceID: Sendable, Hashable {
    package let high: UInt64
    package let low: UInt64

    /// `nil` for the invalid all-zero identifier.
    package init?(high: UInt64, low: UInt64) {
        guard high | low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// Generates a random identifier.
    init(using generator: inout some RandomNumberGenerator) {
        high = generator.next()
        // Avoids the all-zero identifier.
        low = max(1, generator.next())
    }

    /// 32 hexadecimal digits.
    package var text: [UInt8] {
        [high, low].flatMap(\.bigEndianBytes.hexadecimal)
    }
}

/// Identifier of a span: 8 bytes, never all zero (W3C Trace Context, section 3.2.2.4).
struct SpanID: Sendable, Hashable {
    let number: UInt64

    /// `nil` for the invalid all-zero identifier.
    init?(_ number: UInt64) {
        guard number != 0 else { return nil }
        self.number = number
    }

    /// Generates a random identifier.
    init(using generator: inout some RandomNumberGenerator) { number = max(1, generator.next()) }
}
