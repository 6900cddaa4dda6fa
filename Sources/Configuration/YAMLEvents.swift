import CLibyaml

/// The events of one YAML text, with their places, from the distribution's libyaml. The only file that knows it.
///
/// Events show aliases, tags and repeated keys as they stand, and nothing is expanded: time and memory grow with the
/// text alone.
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
        /// As it was resolved; `nil` where none is written.
        var tag: String?
    }

    /// Why the text can't be read on, and where.
    struct Fault: Error {
        var position: Position
        var message: String
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>
    /// The last scalar in quotes that goes over more than one line: where it begins, and the line it ends in.
    private var longQuote: (position: Position, endLine: Int)?

    /// - Throws: `Fault` when memory is short.
    init(_ yaml: [UInt8]) throws(Fault) {
        unsafe parser = .allocate(capacity: 1)
        unsafe parser.initialize(to: yaml_parser_t())
        unsafe text = .allocate(capacity: yaml.count)
        _ = unsafe text.initialize(from: yaml)
        guard unsafe yaml_parser_initialize(parser) == 1 else {
            throw Fault(position: .whole, message: "can't be read: memory is short")
        }
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        // The bytes have to stay where they are as long as the parser lives.
        unsafe yaml_parser_set_input_string(parser, text.baseAddress, text.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe text.deallocate()
    }

    /// The next one. Not to be asked for after `streamEnd` or a fault.
    mutating func next() throws(Fault) -> Event {
        var raw = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(parser, &raw) == 1 else { throw fault() }
        defer { unsafe yaml_event_delete(&raw) }
        var event = Event(kind: .streamEnd, position: unsafe Self.position(raw.start_mark))
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
            let endLine = unsafe Int(clamping: raw.end_mark.line) + 1
            let isQuoted = style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE
            if isQuoted, let line = event.position.line, endLine > line { longQuote = (event.position, endLine) }
        case YAML_SEQUENCE_START_EVENT:
            event.kind = .sequenceStart
            unsafe note(&event, raw.data.sequence_start.anchor, raw.data.sequence_start.tag)
        case YAML_SEQUENCE_END_EVENT: event.kind = .sequenceEnd
        case YAML_MAPPING_START_EVENT:
            event.kind = .mappingStart
            unsafe note(&event, raw.data.mapping_start.anchor, raw.data.mapping_start.tag)
        case YAML_MAPPING_END_EVENT: event.kind = .mappingEnd
        default: break
        }
        return event
    }

    private func note(_ event: inout Event, _ anchor: UnsafeMutablePointer<UInt8>?, _ tag: UnsafeMutablePointer<UInt8>?)
    {
        event.hasAnchor = unsafe anchor != nil
        event.tag = unsafe tag.map { unsafe String(cString: $0) }
    }

    private static func position(_ mark: yaml_mark_t) -> Position {
        .file(line: Int(clamping: mark.line) + 1, column: Int(clamping: mark.column) + 1)
    }

    // MARK: Faults

    private func fault() -> Fault {
        let place = unsafe Self.position(parser.pointee.problem_mark)
        let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "the text ends too early"
        switch unsafe parser.pointee.error {
        case YAML_SCANNER_ERROR, YAML_PARSER_ERROR: break
        case YAML_MEMORY_ERROR: return Fault(position: .whole, message: "can't be read: memory is short")
        default: return Fault(position: .whole, message: "not valid YAML: \(problem)")
        }
        let context = unsafe parser.pointee.context.map { unsafe String(cString: $0) }
        let start = unsafe Self.position(parser.pointee.context_mark)
        if context == "while scanning a quoted scalar", problem.hasPrefix("found unexpected") {
            return openQuote(at: start)
        }
        if let longQuote, longQuote.endLine == place.line { return openQuote(at: longQuote.position) }
        if isTab(at: place) {
            return Fault(position: place, message: "not valid YAML: a tab stands here: indent with spaces")
        }
        if context == "while scanning an alias" {
            let value = word(at: start)
            return Fault(
                position: start,
                message: "put a value that starts with * in quotes, \"\(value)\"; aliases are not supported")
        }
        let whole = [context, problem].compactMap { $0 }.joined(separator: ", ")
        return Fault(position: place, message: "not valid YAML: \(whole)\(Self.hint(problem))")
    }

    private func openQuote(at position: Position) -> Fault {
        let quote = offset(of: position).map { unsafe text[$0] == UInt8(ascii: "'") ? "'" : "\"" } ?? "\""
        return Fault(
            position: position,
            message: "not valid YAML: the quote that opens here is not closed: write \(quote) behind the value")
    }

    private static func hint(_ problem: String) -> String {
        if problem.contains("mapping values are not allowed") {
            return "; check the indentation, and put values that contain \": \" in quotes"
        }
        if problem.contains("cannot start any token") {
            return "; put values that start with @, ` or % in quotes"
        }
        if problem.contains("expected node content") || problem.contains("expected ',' or") {
            return "; see that every [ and { is closed"
        }
        return ""
    }

    private func isTab(at position: Position) -> Bool {
        guard let offset = offset(of: position) else { return false }
        return unsafe text[offset] == UInt8(ascii: "\t")
    }

    /// What stands there, up to a blank or a sign that ends a value.
    private func word(at position: Position) -> String {
        guard let offset = offset(of: position) else { return "*" }
        var end = offset
        while unsafe end < text.count, !" \t\r\n,[]{}\"'".utf8.contains(unsafe text[end]) { end += 1 }
        return unsafe String(decoding: text[offset..<end], as: UTF8.self)
    }

    /// Columns count characters.
    private func offset(of position: Position) -> Int? {
        guard case .file(let line, let column) = position else { return nil }
        var index = 0
        for _ in 1..<max(1, line) {
            while unsafe index < text.count, unsafe text[index] != UInt8(ascii: "\n") { index += 1 }
            index += 1
        }
        for _ in 1..<max(1, column) {
            index += 1
            while unsafe index < text.count, unsafe text[index] & 0xC0 == 0x80 { index += 1 }
        }
        return unsafe index < text.count ? index : nil
    }
}
