import WireText

/// A collector's answer to a successful export: `ExportTraceServiceResponse` of opentelemetry/proto/collector/trace/v1.
struct TracesAnswer: Sendable, Equatable {
    /// Number of rejected spans. They must not be sent again.
    private(set) var rejected: Int64 = 0
    /// Reason for the rejection, or a warning.
    private(set) var message = ""

    /// - Returns: `nil` for a malformed message. Unknown fields are skipped.
    init?(_ bytes: [UInt8]) {
        var fields = ProtobufFields(bytes.span)
        while let field = fields.next() {
            // Of a repeated field, the last value counts.
            guard field.number == 1, case .bytes(let inner) = field.value else { continue }
            (rejected, message) = (0, "")
            var parts = ProtobufFields(bytes.span, in: inner)
            while let part = parts.next() {
                switch (part.number, part.value) {
                case (1, .number(let number)): rejected = Int64(bitPattern: number)
                case (2, .bytes(let text)): message = String(decoding: bytes[text], as: UTF8.self)
                default: break
                }
            }
            guard !parts.isMalformed else { return nil }
        }
        guard !fields.isMalformed else { return nil }
    }
}
