import HTTPMessage
import Testing

/// One byte for each scalar, so that "\u{80}" is the byte 0x80.
func wire(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

/// A row of a table of cases: the bytes, what must come of them, and who says so.
struct Row<Expected: Sendable>: Sendable, CustomTestStringConvertible {
    let source: String
    let input: String
    let expected: Expected

    init(_ source: String, _ input: String, _ expected: Expected) {
        self.source = source
        self.input = input
        self.expected = expected
    }

    var testDescription: String { "\(source): \(input.prefix(100).debugDescription)" }
}

/// The result of parsing a head, or the error.
enum Outcome: Equatable {
    case incomplete
    case complete(Int)
    case refused(MessageError)
}

func outcome(
    _ head: inout RequestHead, _ bytes: [UInt8], limits: HeadLimits = .default
) -> Outcome {
    do throws(MessageError) {
        switch try head.parse(bytes.span, limits: limits) {
        case .incomplete: return .incomplete
        case .complete(let length): return .complete(length)
        }
    } catch {
        return .refused(error)
    }
}

/// The whole head, parsed; records an issue where it is refused.
func parsed(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) -> RequestHead {
    var head = RequestHead()
    let bytes = wire(text)
    #expect(outcome(&head, bytes) == .complete(bytes.count), sourceLocation: sourceLocation)
    return head
}

/// The status that refuses the head, or nil.
func refusal(_ text: String, limits: HeadLimits = .default) -> Int? {
    var head = RequestHead()
    if case .refused(let error) = outcome(&head, wire(text), limits: limits) { return error.status }
    return nil
}

extension ByteRange {
    /// The text of the range in a message made by `wire`.
    func text(in message: String) -> String {
        let bytes = wire(message)
        return string(in: bytes.span)
    }
}
