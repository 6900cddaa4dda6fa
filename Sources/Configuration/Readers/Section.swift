import WireText

/// Reads a mapping, key by key. `finish` reports all keys that were not read. An invalid value is reported and becomes
/// `nil`, so that the reader can continue.
///
/// The same calls make the schema. A section with an `outline` has no content, and records keys and accepted values.
final class Section {
    /// Path for messages: `clients.billing`.
    let path: String
    let position: Position
    let diagnostics: Diagnostics
    /// The path with `*` in place of the operator's names: `clients.*`.
    let pattern: String
    private let entries: [Node.Entry]
    private var known: [String] = []
    let outline: Outline?

    init(_ entries: [Node.Entry], path: String, pattern: String, at position: Position, _ diagnostics: Diagnostics) {
        self.entries = entries
        self.path = path
        self.pattern = pattern
        self.position = position
        self.diagnostics = diagnostics
        outline = nil
    }

    /// Makes a section without content, which records keys in the outline.
    init(_ outline: Outline) {
        self.outline = outline
        (entries, path, pattern, position) = ([], "", "", .whole)
        diagnostics = Diagnostics(file: "", environment: [:])
    }

    /// Reports a problem and returns `nil` if the node is not a mapping.
    /// - Parameter position: position of the section; `nil` for the node's position.
    convenience init?(
        _ node: Node, path: String, pattern: String, at position: Position? = nil, _ diagnostics: Diagnostics
    ) {
        let position = position ?? node.position
        guard case .mapping(let entries) = node.content else {
            let sentence = "\(path): write a mapping of `key: value` lines, not \(node.kind)"
            diagnostics.error(node.missingColon?.position ?? position, sentence + (node.missingColon?.advice ?? ""))
            return nil
        }
        self.init(entries, path: path, pattern: pattern, at: position, diagnostics)
    }

    // MARK: Keys

    private func entry(_ key: String) -> Node.Entry? { entries.first { $0.key == key } }

    func has(_ key: String) -> Bool { entry(key) != nil }

    func isList(_ key: String) -> Bool { if case .sequence = entry(key)?.value.content { true } else { false } }

    func isMapping(_ key: String) -> Bool { if case .mapping = entry(key)?.value.content { true } else { false } }

    func isEmptyList(_ key: String) -> Bool { isList(key) && entry(key)?.value.elements.isEmpty == true }

    /// Returns the position of the key's value, or of the section if the key is absent.
    func position(of key: String) -> Position { entry(key)?.value.position ?? position }

    /// Whether part of the key's value comes from the environment.
    func comesFromEnvironment(_ key: String) -> Bool {
        guard case .scalar(let scalar) = entry(key)?.value.content else { return false }
        return scalar.verbatim || scalar.text.contains("${")
    }

    func shownName(of key: String) -> String { diagnostics.shownName(of: Self.path(path, key)) }

    private static func path(_ path: String, _ key: String) -> String { path.isEmpty ? key : path + "." + key }

    /// Returns `key: value` as the operator writes it in this section: in YAML, or as `VARIABLE=value`.
    func spelling(of key: String, as value: String) -> String { diagnostics.spelling(of: key, in: path, as: value) }

    func error(_ key: String, _ message: String) { diagnostics.error(position(of: key), label(key) + message) }

    /// Reports a fault of the key's value, or of an element of that value.
    func error(_ node: Node, _ key: String, _ message: String) {
        diagnostics.error(node.position, label(key, node) + message)
    }

    /// Reports an http:// URL that only `allow_plaintext` permits.
    func refusePlaintext(_ key: String, _ harm: String) {
        error(key, "\(harm): write https://, or \(spelling(of: "allow_plaintext", as: "true")) if that is meant")
    }

    func warn(_ key: String, _ message: String) { diagnostics.warn(position(of: key), label(key) + message) }

    /// Returns the value of a key; `nil` if the key is absent or has no value. Reports a key without a value.
    func node(_ key: String) -> Node? {
        known.append(key)
        outline?.add(key)
        guard let entry = entry(key) else { return nil }
        if entry.value.isNull, case .scalar(let scalar) = entry.value.content {
            let tilde = scalar.text == "~" ? " (in YAML ~ means none)" : ""
            diagnostics.error(
                entry.keyPosition, "\(shownName(of: key)) has no value\(tilde): write one or leave the key out")
            return nil
        }
        return entry.value
    }

    /// Reports every key that was not read.
    func finish() {
        for entry in entries where !known.contains(entry.key) {
            let location = path.isEmpty ? "" : " in \(path)"
            let missing = entry.value.isNull ? entry.missingSpace : nil
            // Without its colon, a key has its value within, which may be a secret.
            let key = missing == nil ? entry.key : String(entry.key.prefix { $0 != " " && $0 != ":" })
            diagnostics.error(
                missing?.position ?? entry.keyPosition,
                "unknown key \"\(Self.shown(key))\"\(location)"
                    + (missing?.advice ?? Suggestion.phrase(for: entry.key, among: known)))
        }
    }

    // MARK: Values

    /// Returns a single value as text, with `${NAME}` replaced. Reports a fault, and returns `nil`.
    /// - Parameter isSecret: whether messages must not show the value.
    func text(_ node: Node, _ key: String, isSecret: Bool = false) -> String? {
        guard case .scalar(let scalar) = node.content, !node.isNull else {
            error(node, key, "write a single value, not \(node.kind)")
            return nil
        }
        if scalar.verbatim { return scalar.text }
        warnOfBareName(scalar.text, node, key, isSecret: isSecret)
        do {
            return try Substitution.apply(to: scalar.text, diagnostics.environment)
        } catch {
            if let name = Substitution.missingName(in: scalar.text, diagnostics.environment), isNoneOfPrograms(key) {
                return isSecret || pattern == "secret" ? "${\(name)}" : nil
            }
            report(error, node, key)
            return nil
        }
    }

    /// Whether a program's user needs no value of this key. They need the proxy's listeners, and the upstreams' hosts.
    private func isNoneOfPrograms(_ key: String) -> Bool {
        guard diagnostics.isForPrograms else { return false }
        switch pattern {
        case "proxy", "listener": return false
        case "upstreams": return !["host", "listen", "intercept"].contains(key)
        default: return true
        }
    }

    /// Warns of `$NAME`, which is not replaced. Ignores a name with lower-case letters if no such variable is set,
    /// because it may be literal, as `$metadata` in a path of OData.
    private func warnOfBareName(_ text: String, _ node: Node, _ key: String, isSecret: Bool) {
        // A command may be a shell, whose arguments contain shell variables.
        let leavesDollars = ["hooks", "secret"].contains(pattern) && key == "command"
        guard let name = Substitution.bareName(in: text), !leavesDollars else { return }
        guard diagnostics.environment[name] != nil || name.utf8.allSatisfy({ !(0x61...0x7A).contains($0) }) else {
            return
        }
        let advice =
            isSecret
            ? "a name after $ is not replaced here: write ${NAME} for an environment variable"
            : "$\(Self.shown(name)) is not replaced here: write ${\(Self.shown(name))} for the environment variable"
        diagnostics.warn(node.position, label(key, node) + advice)
    }

    func value<T>(_ key: String, _ parse: (String) throws(BadValue) -> T) -> T? {
        tell(key, .value(of: parse))
        return node(key).flatMap { value(of: $0, key, parse) }
    }

    func value<T>(of node: Node, _ key: String, _ parse: (String) throws(BadValue) -> T) -> T? {
        guard let text = text(node, key) else { return nil }
        do {
            return try parse(text)
        } catch {
            report(error, node, key)
            return nil
        }
    }

    /// Replaces the default in `target` if the key is present with a valid value.
    func read<T>(_ key: String, into target: inout T, _ parse: (String) throws(BadValue) -> T) {
        if let outline {
            let shape = Shape.value(of: parse)
            outline.add(key, shape, usual: shape.json(target))
        }
        if let value = value(key, parse) { target = value }
    }

    /// Reads a list, or a single value as a list with one element. Reports repeated values.
    func list<T: Equatable>(_ key: String, _ parse: (String) throws(BadValue) -> T) -> [T]? {
        distinct(key, .value(of: parse), by: \.self) { value(of: $0, key, parse) }
    }

    /// Like `list`, but `read` reads each element, and elements of equal `identity` count as repeated.
    func distinct<Value, Identity: Equatable>(
        _ key: String, _ shape: @autoclosure () -> Shape, _ counts: ClosedRange<Int> = 0...Int.max,
        by identity: (Value) -> Identity, read: (Node) -> Value?
    ) -> [Value]? {
        tell(key, .oneOrMore(shape(), counts))
        return node(key)?.elements.reduce(into: []) { values, element in
            guard let value = read(element) else { return }
            if values.contains(where: { identity($0) == identity(value) }) {
                error(element, key, "this value is repeated")
            } else {
                values.append(value)
            }
        }
    }

    /// Reads a value that is a single value or a mapping.
    func either<T>(_ key: String, _ parse: (String) throws(BadValue) -> T, or read: (Section) -> T?) -> T? {
        tell(key, .any([.value(of: parse), .section { _ = read($0) }]))
        guard let node = node(key) else { return nil }
        guard case .mapping = node.content else { return value(of: node, key, parse) }
        return section(key).flatMap(read)
    }

    func section(_ key: String) -> Section? {
        if let outline {
            let inner = Outline()
            outline.add(key, .section(inner))
            return Section(inner)
        }
        guard let node = node(key) else { return nil }
        return Section(node, path: Self.path(path, key), pattern: Self.path(pattern, key), diagnostics)
    }

    /// Reads a mapping of free names to single values.
    func pairs(
        _ key: String, name: (String) throws(BadValue) -> String, value: (String) throws(BadValue) -> String
    ) -> [NameValue] {
        mapping(key, to: nil, .value(of: value), name: name) { entry, _ in
            self.value(of: entry.value, "\(key).\(entry.key)", value)
        }.map { NameValue(name: $0.name, value: $0.value) }
    }

    /// Reads a mapping of free names. Reports invalid names, and leaves them out.
    /// - Parameters:
    ///   - names, what: kinds of the names and of the values, for messages.
    ///   - value: reads an entry of the mapping.
    func mapping<Value>(
        _ key: String, of names: String = "names", to what: String?, _ shape: @autoclosure () -> Shape,
        name: (String) throws(BadValue) -> String, value: (Node.Entry, Section) -> Value?
    ) -> [(name: String, value: Value)] {
        tell(key, .names(ValueKind(of: name), shape()))
        guard let node = node(key) else { return [] }
        guard case .mapping(let entries) = node.content else {
            let kinds = what.map { "\(names) to \($0)" } ?? "`name: value` lines"
            error(key, "write a mapping of \(kinds), not \(node.kind)")
            return []
        }
        let inner = Section(
            entries, path: shownName(of: key), pattern: Self.path(pattern, key), at: node.position, diagnostics)
        return entries.compactMap { entry in
            do throws(BadValue) {
                let name = try name(entry.key)
                return value(entry, inner).map { (name, $0) }
            } catch {
                let shown = error.quotes ? ", not \"\(Self.shown(entry.key))\"" : ""
                diagnostics.error(entry.keyPosition, label(key) + error.message + shown)
                return nil
            }
        }
    }

    // MARK: Messages

    /// Returns the beginning of messages, `clients.billing.timeout: `; empty if the position already names a variable.
    func label(_ key: String, _ node: Node? = nil) -> String {
        if case .variable = node?.position ?? position(of: key) { return "" }
        return shownName(of: key) + ": "
    }

    private func report(_ fault: BadValue, _ node: Node, _ key: String) {
        var message = fault.message
        if fault.quotes, case .scalar(let scalar) = node.content {
            message += ", not \"\(Self.shown(scalar.text))\""
            if let found = LookAlike(in: scalar.text) { message += ": it holds \(found.name)" }
        }
        error(node, key, message)
    }

    /// Returns the operator's text, shortened and without control characters.
    static func shown(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        shown += text.unicodeScalars.prefix(80).map { $0.value < 0x20 || $0.value == 0x7F ? "\u{FFFD}" : $0 }
        return String(shown) + (text.unicodeScalars.count > 80 ? "…" : "")
    }
}
