import WireText

// Values that are passed on as JSON. Other specifications define their content.
extension Section {
    private static let maxJSONDepth = 16

    /// Converts YAML to JSON (YAML 1.2, section 10.2). Unquoted numbers, `true`, `false` and `null` keep their type.
    /// Any other scalar becomes text. Reports a problem and returns `nil` if the conversion is impossible.
    func json(_ node: Node, _ key: String, depth: Int = 0) -> JSONValue? {
        guard depth < Self.maxJSONDepth else {
            error(node, key, "this is nested deeper than \(Self.maxJSONDepth) levels")
            return nil
        }
        switch node.content {
        case .scalar(let scalar):
            if node.isNull { return .null }
            guard let text = text(node, key) else { return nil }
            return scalar.plain && !scalar.verbatim && !scalar.text.contains("${") ? Self.plain(text) : .string(text)
        case .sequence(let nodes):
            let values = nodes.map { json($0, key, depth: depth + 1) }
            return values.contains(nil) ? nil : .array(values.compactMap { $0 })
        case .mapping(let entries):
            var members: [String: JSONValue] = [:]
            for entry in entries {
                guard let value = json(entry.value, "\(key).\(Self.shown(entry.key))", depth: depth + 1) else {
                    return nil
                }
                members[entry.key] = value
            }
            return .object(members)
        }
    }

    private static func plain(_ text: String) -> JSONValue {
        if let flag = try? Grammar.boolean(text) { return .bool(flag) }
        if text.utf8.count <= 64, case .number(let number)? = try? JSONParser.parse(Array(text.utf8)) {
            return .number(number)
        }
        return .string(text)
    }
}
