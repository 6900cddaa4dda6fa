import WireText

/// Writes an export request: `ExportTraceServiceRequest` of opentelemetry/proto/collector/trace/v1, in binary form.
/// Numbers in the code are those of the message's fields.
enum TracesRequest {
    /// - Parameters:
    ///   - resource: attributes of this process.
    ///   - scope: name and version of this program.
    static func bytes(
        _ spans: [TraceSpan], of resource: [TraceSpan.Attribute], scope: (name: String, version: String)
    ) -> [UInt8] {
        var request = ProtobufWriter()
        request.message(1) { resourceSpans in
            resourceSpans.message(1) { writer in
                for attribute in resource { writer.message(1) { write(attribute, to: &$0) } }
            }
            resourceSpans.message(2) { scopeSpans in
                scopeSpans.message(1) { writer in
                    writer.text(1, scope.name)
                    writer.text(2, scope.version)
                }
                for span in spans { scopeSpans.message(2) { write(span, to: &$0) } }
            }
        }
        return request.bytes
    }

    private static func write(_ span: TraceSpan, to writer: inout ProtobufWriter) {
        writer.identifier(1, span.context.trace.high, span.context.trace.low)
        writer.identifier(2, span.context.span)
        if let parent = span.context.parent { writer.identifier(4, parent) }
        writer.text(5, span.name)
        writer.number(6, span.kind.rawValue)
        writer.fixed64(7, span.start)
        writer.fixed64(8, span.end)
        for attribute in span.attributes { writer.message(9) { write(attribute, to: &$0) } }
        for event in span.events {
            writer.message(11) { writer in
                writer.fixed64(1, event.time)
                writer.text(2, event.name)
                for attribute in event.attributes { writer.message(3) { write(attribute, to: &$0) } }
            }
        }
        if span.isError { writer.message(15) { $0.number(3, statusError) } }
        // Bit 9 says whether the parent is remote; bit 8 says that bit 9 is valid.
        let isRemote: UInt32 = span.context.isParentRemote ? 0x200 : 0
        writer.fixed32(16, UInt32(span.context.flags.rawValue) | 0x100 | isRemote)
    }

    /// The number of `STATUS_CODE_ERROR`.
    private static let statusError: UInt64 = 2

    private static func write(_ attribute: TraceSpan.Attribute, to writer: inout ProtobufWriter) {
        writer.text(1, attribute.name)
        writer.message(2) { writer in
            // The value is a oneof, so its member is written even if it is zero or empty.
            switch attribute.value {
            case .text(let text): writer.text(1, text, keepsEmpty: true)
            case .flag(let flag): writer.number(2, flag ? 1 : 0, keepsZero: true)
            case .number(let number): writer.number(3, UInt64(bitPattern: number), keepsZero: true)
            case .seconds(let seconds): writer.double(4, seconds)
            }
        }
    }
}
