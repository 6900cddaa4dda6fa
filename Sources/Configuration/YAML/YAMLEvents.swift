import CLibyaml

/// The events of a YAML text with their positions, from the distribution's libyaml. No other file uses libyaml.
///
/// libyaml does not interpret aliases, tags and repeated keys, so time and memory are linear in the text's length.
@safe struct YAMLEvents: ~Copyable {
    struct Event {
        enum Kind {
            case streamStart, streamEnd, documentStart, documentEnd
            case alias
            case scalar(text: String, isPlain: Bool)
            case sequenceStart, sequenceEnd, mappingStart, mappingEnd
        }

        var kind: Kind
        var position: Position
        var hasAnchor = false
        /// The resolved tag; `nil` if the text has no tag here.
        var tag: String?
    }

    /// The reason why reading ended, and its position in the text.
    struct Fault: Error {
        var position: Position
        var message: String
    }

    /// Limit of nested lists and mappings, because libyaml's time grows with the square of the depth.
    private static let maxDepth = 32

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>
    /// The last single value, to explain faults.
    private var lastScalar: YAMLMistake.Scalar?
    /// Whether each open list or mapping is in brackets.
    private var open: [Bool] = []

    /// - Throws: `Fault` if there is not enough memory.
    init(_ yaml: [UInt8]) throws(Fault) {
        unsafe parser = .allocate(capacity: 1)
        unsafe parser.initialize(to: yaml_parser_t())
        unsafe text = .allocate(capacity: yaml.count)
        _ = unsafe text.initialize(from: yaml)
        guard unsafe yaml_parser_initialize(parser) == 1 else {
            throw Fault(position: .whole, message: "can't be read: memory is short")
        }
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        // The parser keeps a pointer to the bytes, so `text` lives as long as the parser.
        unsafe yaml_parser_set_input_string(parser, text.baseAddress, text.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe text.deallocate()
    }

    /// Reads the next event. Don't call it after `streamEnd` or a fault.
    mutating func next() throws(Fault) -> Event {
        var raw = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(parser, &raw) == 1 else { throw fault() }
        defer { unsafe yaml_event_delete(&raw) }
        var event = Event(kind: .streamEnd, position: unsafe Self.location(raw.start_mark).position)
        switch unsafe raw.type {
        case YAML_STREAM_START_EVENT: event.kind = .streamStart
        case YAML_DOCUMENT_START_EVENT: event.kind = .documentStart
        case YAML_DOCUMENT_END_EVENT: event.kind = .documentEnd
        case YAML_ALIAS_EVENT: event.kind = .alias
        case YAML_SCALAR_EVENT:
            let scalar = unsafe raw.data.scalar
            let bytes = unsafe UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let style = unsafe scalar.style
            event.kind = unsafe .scalar(
                text: String(decoding: bytes, as: UTF8.self), isPlain: style == YAML_PLAIN_SCALAR_STYLE)
            unsafe note(&event, scalar.anchor, scalar.tag)
            lastScalar = unsafe .init(
                start: Self.location(raw.start_mark), end: Self.location(raw.end_mark),
                isQuoted: style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE)
            if case .scalar(let text, isPlain: true) = event.kind, let fault = fault(inPlain: text) { throw fault }
        case YAML_SEQUENCE_START_EVENT:
            event.kind = .sequenceStart
            let start = unsafe raw.data.sequence_start
            unsafe note(&event, start.anchor, start.tag)
            try begin(unsafe raw.start_mark, isFlow: unsafe start.style == YAML_FLOW_SEQUENCE_STYLE)
        case YAML_SEQUENCE_END_EVENT:
            event.kind = .sequenceEnd
            _ = open.popLast()
        case YAML_MAPPING_START_EVENT:
            event.kind = .mappingStart
            let start = unsafe raw.data.mapping_start
            unsafe note(&event, start.anchor, start.tag)
            try begin(unsafe raw.start_mark, isFlow: unsafe start.style == YAML_FLOW_MAPPING_STYLE)
        case YAML_MAPPING_END_EVENT:
            event.kind = .mappingEnd
            _ = open.popLast()
        default: break
        }
        return event
    }

    private mutating func begin(_ mark: yaml_mark_t, isFlow: Bool) throws(Fault) {
        guard open.count < Self.maxDepth else {
            throw Fault(
                position: Self.location(mark).position,
                message: "nested too deeply: no setting has so many levels")
        }
        open.append(isFlow)
    }

    /// Returns the fault of the last value, which has no quotes: a look-alike, or a list item joined to the value.
    private func fault(inPlain value: String) -> Fault? {
        guard let scalar = lastScalar else { return nil }
        let found = LookAlike(inPlain: value)
        // Between brackets, a `-` does not begin a list item.
        let isFolded = scalar.start.line < scalar.end.line && !open.contains(true)
        guard found != nil || isFolded else { return nil }
        let text = YAMLText(unsafe Array(text))
        if let found { return found.fault(at: text.first(found.scalar, from: scalar.start) ?? scalar.start) }
        return YAMLMistake.foldedItem(in: text, scalar)
    }

    private func note(_ event: inout Event, _ anchor: UnsafeMutablePointer<UInt8>?, _ tag: UnsafeMutablePointer<UInt8>?)
    {
        event.hasAnchor = unsafe anchor != nil
        event.tag = unsafe tag.map { unsafe String(cString: $0) }
    }

    private static func location(_ mark: yaml_mark_t) -> YAMLText.Location {
        .init(Int(clamping: mark.line) + 1, Int(clamping: mark.column) + 1)
    }

    // MARK: Faults

    private func fault() -> Fault {
        let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "the text ends too early"
        switch unsafe parser.pointee.error {
        case YAML_SCANNER_ERROR, YAML_PARSER_ERROR: break
        case YAML_MEMORY_ERROR: return Fault(position: .whole, message: "can't be read: memory is short")
        default: return Fault(position: .whole, message: "not valid YAML: \(problem)")
        }
        let context = unsafe parser.pointee.context.map { unsafe String(cString: $0) }
        return YAMLMistake(
            text: YAMLText(unsafe Array(text)), problem: problem,
            location: unsafe Self.location(parser.pointee.problem_mark),
            context: context ?? "",
            start: context == nil ? nil : unsafe Self.location(parser.pointee.context_mark), lastScalar: lastScalar
        ).fault
    }
}
