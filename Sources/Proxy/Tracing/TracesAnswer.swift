/// A collector's answer to a successful export: `ExportTraceServiceResponse` of opentelemetry/proto/collector/trace/v1.
struct TracesAnswer: Sendable, Equatable {
    /// Number of rejected spans. They must not be sent again.
    private(set) var rejected: Int64 = 0
    /// Reason for the rejection, or a warning.
    private(set) var message = ""

    /// - Returns: `nil` for a malformed message. Unknown fields are skipped.
    init?(_ bytes: [UInt8]) {
        guard
            Self.read(
                bytes[...],
                { field, value in
                    // Of a repeated field, the last value counts.
                    guard field == 1, case .bytes(let inner) = value else { return true }
                    (rejected, message) = (0, "")
                    return Self.read(inner) { field, value in
                        switch (field, value) {
                        case (1, .number(let number)): rejected = Int64(bitPattern: number)
                        case (2, .bytes(let text)): message = String(decoding: text, as: UTF8.self)
                        default: break
                        }
                        return true
                    }
                })
        else { return nil }
    }

    private enum Value {
        case number(UInt64)
        case bytes(ArraySlice<UInt8>)
        case other
    }

    /// - Returns: whether all bytes form a well-formed message.
    private static func read(_ bytes: ArraySlice<UInt8>, _ take: (UInt64, Value) -> Bool) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            guard let tag = varint(&rest), tag >> 3 > 0 else { return false }
            let value: Value
            switch tag & 7 {
            case 0:
                guard let number = varint(&rest) else { return false }
                value = .number(number)
            case 2:
                guard let count = varint(&rest), count <= UInt64(rest.count) else { return false }
                value = .bytes(rest.prefix(Int(count)))
                rest = rest.dropFirst(Int(count))
            case 1, 5:
                let count = tag & 7 == 1 ? 8 : 4
                guard rest.count >= count else { return false }
                value = .other
                rest = rest.dropFirst(count)
            default: return false
            }
            guard take(tag >> 3, value) else { return false }
        }
        return true
    }

    private static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = bytes.popFirst() else { return nil }
            // Only one bit of the tenth byte fits into 64 bits.
            guard shift < 63 || byte <= 1 else { return nil }
            number |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }
}
