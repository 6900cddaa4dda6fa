import Yams

/// YAML text → our tree. The only file that knows the YAML library.
///
/// Two things are kept from the library by writing a stand-in character over them, one for one, so that columns stay:
/// the `*` of an alias (expanding aliases, or hashing them as keys, takes time without bound), and the second spelling
/// of a key (it stops at the first duplicate and names one place; we name both and go on).
struct YAMLDocument {
    private static let maxDepth = 32
    private static let tooDeep = "nested too deeply: nothing here goes beyond a few levels"
    private static let noTag = ["", "tag:yaml.org,2002:str"]

    private let diagnostics: Diagnostics
    private var text: [Unicode.Scalar]
    /// What stands in for what.
    private var standIns: [Unicode.Scalar: Unicode.Scalar] = [:]
    private var nextStandIn: UInt32 = 0xE000
    private let asterisk: Unicode.Scalar?

    /// The root node, or `nil` with the reasons in `diagnostics`.
    static func parse(_ yaml: String, _ diagnostics: Diagnostics) -> Node? {
        guard var document = YAMLDocument(yaml, diagnostics) else { return nil }
        return document.compose()
    }

    private init?(_ yaml: String, _ diagnostics: Diagnostics) {
        self.diagnostics = diagnostics
        text = Array(yaml.unicodeScalars)
        if text.first == "\u{FEFF}" { text.removeFirst() }
        var line = 1
        var column = 1
        for scalar in text {
            switch scalar.value {
            case 0x0A: (line, column) = (line + 1, 0)
            case 0x09, 0x0D, 0x20...0x7E, 0x85, 0xA0...0xFFFD, 0x10000...: break
            default:
                diagnostics.error(
                    .file(line: line, column: column),
                    "control character U+\(String(scalar.value, radix: 16, uppercase: true)): remove it")
                return nil
            }
            column += 1
        }
        var asterisk: Unicode.Scalar?
        if text.contains("*") {
            asterisk = Self.unused(in: text, from: &nextStandIn)
            guard let asterisk else {
                diagnostics.error(.whole, "too many private-use characters: remove them")
                return nil
            }
            standIns[asterisk] = "*"
            for index in text.indices where text[index] == "*" { text[index] = asterisk }
        }
        self.asterisk = asterisk
    }

    private static func unused(in text: [Unicode.Scalar], from next: inout UInt32) -> Unicode.Scalar? {
        while next <= 0xF8FF, let candidate = Unicode.Scalar(next) {
            next += 1
            if !text.contains(candidate) { return candidate }
        }
        return nil
    }

    // MARK: The library

    private mutating func compose() -> Node? {
        while true {
            var source = String(String.UnicodeScalarView(text))
            // The library keeps a pointer to the string's bytes; very short strings have none that stays.
            source += "\n# end of the configuration\n"
            do {
                let parser = try Parser(yaml: source, resolver: .basic, constructor: .default, encoding: .utf8)
                guard let root = try parser.singleRoot() else {
                    diagnostics.error(.whole, "the file is empty: write at least `upstreams:`; see the documentation")
                    return nil
                }
                // Nodes hold their anchors weakly; the parser holds them for good.
                return withExtendedLifetime(parser) { node(root, depth: 0) }
            } catch YamlError.duplicatedKeysInMapping(_, let context) {
                if !hideKey(line: context.mark.line, column: context.mark.column) {
                    diagnostics.error(
                        .file(line: context.mark.line, column: context.mark.column), "this key stands here twice")
                    return nil
                }
            } catch let error as YamlError {
                report(error)
                return nil
            } catch {
                diagnostics.error(.whole, "not valid YAML")
                return nil
            }
        }
    }

    private func report(_ error: YamlError) {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _):
            let message = [context?.text, problem].compactMap { $0 }.joined(separator: ", ")
            if problem.contains("nesting level") {
                diagnostics.error(.file(line: mark.line, column: mark.column), Self.tooDeep)
                return
            }
            // What is missing at the end is missed behind the line that we added.
            let last = 1 + text.lazy.filter { $0 == "\n" }.count
            diagnostics.error(
                .file(line: min(mark.line, last), column: mark.column),
                "not valid YAML: \(restored(message))\(hint(problem))")
        case .composer(_, _, let mark, _):
            diagnostics.error(
                .file(line: mark.line, column: mark.column),
                "a second YAML document starts here: write one document only, without further `---`")
        case .reader(let problem, _, _, _):
            diagnostics.error(.whole, "not valid YAML: \(problem)")
        default:
            diagnostics.error(.whole, "not valid YAML")
        }
    }

    private func hint(_ problem: String) -> String {
        if problem.contains("mapping values are not allowed") {
            return "; check the indentation, and put values that contain \": \" in quotes"
        }
        if problem.contains("cannot start any token") {
            return "; indent with spaces, not tabs, and put values that start with @, ` or % in quotes"
        }
        if problem.contains("expected node content") || problem.contains("expected ',' or") {
            return "; see that every [ and { is closed"
        }
        return ""
    }

    // MARK: Stand-ins

    /// Writes a stand-in over the first character of the key at this place. False when that is not possible.
    private mutating func hideKey(line: Int, column: Int) -> Bool {
        var index = 0
        var current = 1
        while current < line, index < text.count {
            if text[index] == "\n" { current += 1 }
            index += 1
        }
        index += column - 1
        if index < text.count, text[index] == "\"" || text[index] == "'" { index += 1 }
        guard index < text.count, text[index] != "\\", let standIn = Self.unused(in: text, from: &nextStandIn) else {
            return false
        }
        standIns[standIn] = standIns[text[index]] ?? text[index]
        text[index] = standIn
        return true
    }

    private func restored(_ string: String) -> String {
        guard !standIns.isEmpty else { return string }
        var view = String.UnicodeScalarView()
        for scalar in string.unicodeScalars { view.append(standIns[scalar] ?? scalar) }
        return String(view)
    }

    // MARK: Our tree

    private func node(_ source: Yams.Node, depth: Int) -> Node? {
        let position = Self.position(source.mark)
        guard depth < Self.maxDepth else {
            diagnostics.error(position, Self.tooDeep)
            return nil
        }
        if source.anchor != nil {
            diagnostics.error(position, "anchors and aliases are not supported: write the value where it is needed")
        }
        switch source {
        case .scalar(let scalar):
            checkTag(scalar.tag, position)
            return Node(position: position, content: .scalar(self.scalar(scalar, position)))
        case .sequence(let sequence):
            checkTag(sequence.tag, position)
            return Node(position: position, content: .sequence(sequence.compactMap { node($0, depth: depth + 1) }))
        case .mapping(let mapping):
            checkTag(mapping.tag, position)
            return Node(position: position, content: .mapping(entries(mapping, depth: depth)))
        case .alias:
            return nil
        }
    }

    private func entries(_ mapping: Yams.Node.Mapping, depth: Int) -> [Node.Entry] {
        var entries: [Node.Entry] = []
        var places: [String: Position] = [:]
        for (keyNode, valueNode) in mapping {
            let position = Self.position(keyNode.mark)
            guard case .scalar(let scalar) = keyNode else {
                diagnostics.error(position, "a key must be a plain word")
                continue
            }
            let key = self.scalar(scalar, position).text
            if keyNode.anchor != nil {
                diagnostics.error(position, "anchors and aliases are not supported: write the key without")
            }
            if key == "<<" {
                diagnostics.error(position, "merge keys (<<) are not supported: write the keys out")
                continue
            }
            if let first = places[key] {
                diagnostics.error(position, "duplicate key \"\(key)\": it stands in \(first.inWords) already")
                continue
            }
            places[key] = position
            guard let value = node(valueNode, depth: depth + 1) else { continue }
            entries.append(.init(key: key, keyPosition: position, value: value))
        }
        return entries
    }

    private func scalar(_ source: Yams.Node.Scalar, _ position: Position) -> Node.Scalar {
        let plain = source.style == .plain || source.style == .any
        if plain, let asterisk, source.string.unicodeScalars.first == asterisk {
            diagnostics.error(
                position,
                "put a value that starts with * in quotes, \"\(restored(source.string))\"; aliases are not supported")
        }
        return .init(text: restored(source.string), plain: plain)
    }

    private func checkTag(_ tag: Tag, _ position: Position) {
        guard !Self.noTag.contains(tag.description) else { return }
        diagnostics.error(position, "YAML tags are not supported: leave out \(Self.short(tag.description))")
    }

    private static func short(_ tag: String) -> String {
        let prefix = "tag:yaml.org,2002:"
        return tag.hasPrefix(prefix) ? "!!" + tag.dropFirst(prefix.count) : tag
    }

    private static func position(_ mark: Mark?) -> Position {
        mark.map { .file(line: $0.line, column: $0.column) } ?? .whole
    }
}
