/// Converts YAML text to a tree of nodes. Reports unsupported YAML with its position.
struct YAMLDocument: ~Copyable {
    private let diagnostics: Diagnostics
    private var events: YAMLEvents

    /// Returns the root node; `nil` if there is no usable root. Reports all faults to `diagnostics`.
    static func parse(_ yaml: String, _ diagnostics: Diagnostics) -> Node? {
        guard let text = checked(yaml, diagnostics) else { return nil }
        do throws(YAMLEvents.Fault) {
            var document = YAMLDocument(diagnostics, try YAMLEvents(text))
            return try document.root()
        } catch {
            diagnostics.error(error.position, error.message)
            return nil
        }
    }

    private init(_ diagnostics: Diagnostics, _ events: consuming YAMLEvents) {
        self.diagnostics = diagnostics
        self.events = events
    }

    /// Returns the bytes without a byte order mark at the start. Returns `nil` and reports a control character, a later
    /// byte order mark, or a line break that editors and parsers count differently.
    private static func checked(_ yaml: String, _ diagnostics: Diagnostics) -> [UInt8]? {
        var text = yaml.unicodeScalars[...]
        if text.first == "\u{FEFF}" { text.removeFirst() }
        var location = YAMLText.Location(1, 1)
        var last: Unicode.Scalar?
        for scalar in text {
            switch scalar.value {
            case 0x0A, 0x0D:
                if scalar == "\r" || last != "\r" { location.line += 1 }
                location.column = 0
            case 0x09, 0x20...0x7E, 0xA0...0x2027, 0x202A...0xFEFE, 0xFF00...0xFFFD, 0x10000...: break
            default:
                diagnostics.error(location.position, fault(scalar))
                return nil
            }
            location.column += 1
            last = scalar
        }
        return Array(String(text).utf8)
    }

    private static func fault(_ scalar: Unicode.Scalar) -> String {
        let number = "U+\(String(scalar.value, radix: 16, uppercase: true))"
        return switch scalar.value {
        case 0: "control character U+0: remove it; if there are many, save the file as UTF-8"
        case 0x85, 0x2028, 0x2029: "invisible line break \(number): write a normal line break instead"
        case 0xFEFF: "byte order mark \(number) in the middle of the text: remove it"
        default: "control character \(number): remove it"
        }
    }

    private mutating func root() throws(YAMLEvents.Fault) -> Node? {
        var root: Node?
        var documents = 0
        while true {
            let event = try events.next()
            switch event.kind {
            case .streamStart, .documentEnd: break
            case .streamEnd:
                if documents == 0 {
                    diagnostics.error(.whole, "the file is empty: write at least `upstreams:`; see the documentation")
                }
                return root
            case .documentStart:
                documents += 1
                guard documents == 1 else {
                    diagnostics.error(
                        event.position,
                        "a second YAML document starts here: write one document only, without further `---`")
                    return nil
                }
            default: root = try node(event)
            }
        }
    }

    /// Returns the node that begins with `event`; `nil` for an unusable node. Reads to the node's end in both cases.
    private mutating func node(_ event: YAMLEvents.Event) throws(YAMLEvents.Fault) -> Node? {
        if event.hasAnchor {
            diagnostics.error(
                event.position, "anchors and aliases are not supported: write the value where it is needed")
        }
        checkTag(event)
        switch event.kind {
        case .scalar(let text, let isPlain):
            return Node(position: event.position, content: .scalar(.init(text: text, plain: isPlain)))
        case .sequenceStart:
            return Node(position: event.position, content: .sequence(try items()))
        case .mappingStart:
            return Node(position: event.position, content: .mapping(try entries()))
        default:
            refuseAlias(event)
            return nil
        }
    }

    private mutating func items() throws(YAMLEvents.Fault) -> [Node] {
        var items: [Node] = []
        while true {
            let event = try events.next()
            if case .sequenceEnd = event.kind { return items }
            if let item = try node(event) { items.append(item) }
        }
    }

    private mutating func entries() throws(YAMLEvents.Fault) -> [Node.Entry] {
        var entries: [Node.Entry] = []
        var places: [String: Position] = [:]
        while true {
            let event = try events.next()
            if case .mappingEnd = event.kind { return entries }
            guard let key = try key(event, places) else {
                try skip(try events.next())
                continue
            }
            places[key] = event.position
            guard let value = try node(try events.next()) else { continue }
            entries.append(.init(key: key, keyPosition: event.position, value: value))
        }
    }

    /// - Parameter places: positions of this mapping's keys.
    /// - Returns: `nil` if the caller has to skip the value.
    private mutating func key(
        _ event: YAMLEvents.Event, _ places: [String: Position]
    ) throws(YAMLEvents.Fault) -> String? {
        guard case .scalar(let key, let isPlain) = event.kind else {
            if case .alias = event.kind {
                refuseAlias(event)
            } else {
                diagnostics.error(event.position, "a key must be a plain word")
                try skip(event)
            }
            return nil
        }
        if event.hasAnchor {
            diagnostics.error(event.position, "anchors and aliases are not supported: write the key without an anchor")
        }
        if key == "<<" {
            diagnostics.error(event.position, "merge keys (<<) are not supported: write the keys out")
            return nil
        }
        // YAML reads `name {value` as a single key.
        if isPlain, let bracket = key.firstRange(of: " {") ?? key.firstRange(of: " [") {
            diagnostics.error(
                event.position, "a colon is missing behind \"\(key[..<bracket.lowerBound])\": write `key: value`")
            return nil
        }
        if let first = places[key] {
            diagnostics.error(event.position, "duplicate key \"\(key)\": it is already in \(first.inWords)")
            return nil
        }
        return key
    }

    /// Reads to the end of the node that begins with `event`.
    private mutating func skip(_ event: YAMLEvents.Event) throws(YAMLEvents.Fault) {
        var event = event
        var depth = 0
        while true {
            switch event.kind {
            case .sequenceStart, .mappingStart: depth += 1
            case .sequenceEnd, .mappingEnd: depth -= 1
            default: break
            }
            guard depth > 0 else { return }
            event = try events.next()
        }
    }

    private func refuseAlias(_ event: YAMLEvents.Event) {
        diagnostics.error(
            event.position, "put a value that starts with * in quotes; anchors and aliases are not supported")
    }

    private func checkTag(_ event: YAMLEvents.Event) {
        let standard = "tag:yaml.org,2002:"
        guard let tag = event.tag, tag != standard + "str" else { return }
        let written = tag.hasPrefix(standard) ? "!!" + tag.dropFirst(standard.count) : tag
        diagnostics.error(event.position, "YAML tags are not supported: leave out \(written)")
    }
}
