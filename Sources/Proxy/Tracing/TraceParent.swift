import WireText

/// Content of a `traceparent` field: the trace, the sender's span, and whether the trace is recorded (W3C Trace
/// Context, section 3.2).
struct TraceParent: Sendable, Equatable {
    var trace: TraceID
    /// Identifier of the sender's span, never zero.
    var span: UInt64
    var flags: TraceFlags

    /// Length of version 00 in bytes.
    static let length = 55

    /// Value of the field in version 00, the only version so far.
    var text: InlineArray<55, UInt8> {
        var text: InlineArray<55, UInt8> = .init(repeating: Self.dash)
        Self.write(0, 2, at: 0, &text)
        Self.write(trace.high, 16, at: 3, &text)
        Self.write(trace.low, 16, at: 19, &text)
        Self.write(span, 16, at: 36, &text)
        Self.write(UInt64(flags.rawValue), 2, at: 53, &text)
        return text
    }

    private static func write(_ number: UInt64, _ count: Int, at start: Int, _ text: inout InlineArray<55, UInt8>) {
        for index in 0..<count {
            text[start + index] = ASCII.hexDigit(UInt8(number >> UInt64(4 * (count - 1 - index)) & 15))
        }
    }
}

extension TraceParent {
    /// Parses `version "-" trace-id "-" parent-id "-" flags` in lower-case hexadecimal digits. A later version may have
    /// more after this prefix (section 3.2.4).
    /// - Returns: `nil` for an unusable value.
    init?(_ value: Span<UInt8>) {
        guard value.count >= Self.length, value[2] == Self.dash, value[35] == Self.dash, value[52] == Self.dash,
            let version = Self.number(value, 0, 2), version != 0xFF,
            let high = Self.number(value, 3, 16), let low = Self.number(value, 19, 16),
            let span = Self.number(value, 36, 16), let flags = Self.number(value, 53, 2),
            let trace = TraceID(high: high, low: low), span != 0
        else { return nil }
        if value.count > Self.length {
            guard version > 0, value[Self.length] == Self.dash else { return nil }
        }
        self.init(trace: trace, span: span, flags: TraceFlags(rawValue: UInt8(flags)))
    }

    private static let dash = UInt8(ascii: "-")

    private static func number(_ value: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64? {
        var number: UInt64 = 0
        for index in start..<start + count {
            // Upper-case digits are not allowed (section 3.2.1).
            guard ASCII.lowercased(value[index]) == value[index], let digit = ASCII.hexValue(value[index]) else {
                return nil
            }
            number = number << 4 | UInt64(digit)
        }
        return number
    }
}

/// Flags of `traceparent` (W3C Trace Context, section 3.2.2.5, and Level 2).
struct TraceFlags: OptionSet, Sendable {
    var rawValue: UInt8

    /// The sender may have recorded the trace.
    static let sampled = TraceFlags(rawValue: 1)
    /// The trace's ID is random. This flag is passed on together with the ID.
    static let random = TraceFlags(rawValue: 2)

    /// Flags that may be passed on; other bits must be zero.
    static let known: TraceFlags = [.sampled, .random]
}
