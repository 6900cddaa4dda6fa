import WireText

/// Converts shapes to JSON Schema, draft 2020-12.
struct SchemaWriter {
    /// Pattern for values with `${NAME}`, which an editor can't check.
    private static let substituted = #"\$\{"#
    private static let substitution = "substituted"

    /// Content of `$defs`.
    private(set) var definitions: [JSON.Member]
    private let descriptions: [String: String]

    init(descriptions: [String: String]) {
        self.descriptions = descriptions
        definitions = [
            .init(
                Self.substitution,
                .object([
                    .init("description", "A value that is taken from the environment: ${NAME}."),
                    .init("type", "string"), .init("pattern", .string(Self.substituted)),
                ]))
        ]
    }

    /// - Parameter path: path of the key: `clients.*.client_id`.
    mutating func members(_ shape: Shape, at path: String) -> [JSON.Member] {
        switch shape {
        case .anything: []
        case .value(let kind): Self.members(kind)
        case .list(let shape, let counts): list(shape, counts, at: path)
        case .names(let name, let shape): names(name, shape, at: path)
        case .section(let outline): mapping(outline, isOpen: false, at: path)
        case .open(let outline): mapping(outline, isOpen: true, at: path)
        case .any(let shapes): Self.any(shapes.map { members($0, at: path) })
        case .named(let name, let shape): reference(name, shape)
        case .reference(let name): [Self.ref(name)]
        }
    }

    // MARK: Single values

    private static func members(_ kind: ValueKind) -> [JSON.Member] {
        switch kind {
        case .text(let text): members(text)
        case .words(let words, let deprecated): members(words, deprecated)
        case .boolean: any([[.init("type", "boolean")], string("^([Tt]rue|TRUE|[Ff]alse|FALSE)$")])
        case .integer(let range): any([number(range), string("^[0-9]+$")])
        case .duration(let range, let orOff):
            any([string(range.lowerBound > .zero ? durations : durationsAndZero)], orOff: orOff)
        case .size(let range, let orOff):
            any([string("^[0-9]+(B|KiB|MiB|GiB)?$"), number(range)], orOff: orOff)
        case .any(let kinds): any(kinds.map { members($0) })
        }
    }

    private static let durations = "^0*[1-9][0-9]*(ms|s|m|h)$"
    private static let durationsAndZero = "^[0-9]+(ms|s|m|h)$"

    private static func members(_ text: ValueKind.Text) -> [JSON.Member] {
        var types: [JSON] = ["string"]
        if text.acceptsNumbers { types.append("number") }
        if text.acceptsBooleans { types.append("boolean") }
        var members: [JSON.Member] = [.init("type", types.count == 1 ? types[0] : .array(types))]
        if let pattern = text.pattern { members += [.init("pattern", .string("\(pattern)|\(substituted)"))] }
        if text.pattern == nil, !text.acceptsEmpty { members += [.init("minLength", 1)] }
        return members
    }

    private static func members(_ words: [String], _ deprecated: [String]) -> [JSON.Member] {
        let old: [[JSON.Member]] =
            deprecated.isEmpty
            ? [] : [[.init("enum", JSON(deprecated)), .init("deprecated", true)]]
        return any([[.init("enum", .array(words.flatMap(spellings)))]] + old + [[ref(substitution)]])
    }

    /// Returns the JSON values of a word. To editors, `true` without quotes is a boolean.
    private static func spellings(_ word: String) -> [JSON] {
        switch word {
        case "true", "false": [.bool(word == "true"), .string(word)]
        default: [.string(word)]
        }
    }

    private static func string(_ pattern: String) -> [JSON.Member] {
        [.init("type", "string"), .init("pattern", .string("\(pattern)|\(substituted)"))]
    }

    private static func number(_ range: ClosedRange<Int>) -> [JSON.Member] {
        [
            .init("type", "integer"), .init("minimum", .number(range.lowerBound)),
            .init("maximum", .number(range.upperBound)),
        ]
    }

    private static func ref(_ name: String) -> JSON.Member { .init("$ref", .string("#/$defs/\(name)")) }

    private static func any(_ schemas: [[JSON.Member]], orOff: Bool = false) -> [JSON.Member] {
        let off: [[JSON.Member]] = [[.init("enum", .array(["off", "Off", "OFF", "false", false]))]]
        let all = (schemas + (orOff ? off : [])).flatMap(alternatives)
        return all.count == 1 ? all[0] : [.init("anyOf", .array(all.map { .object($0) }))]
    }

    /// Returns the alternatives in a schema, to flatten nested `anyOf`.
    private static func alternatives(_ schema: [JSON.Member]) -> [[JSON.Member]] {
        guard schema.count == 1, schema[0].name == "anyOf", case .array(let inner) = schema[0].value else {
            return [schema]
        }
        return inner.map { if case .object(let members) = $0 { members } else { [] } }
    }

    // MARK: Lists and mappings

    private mutating func list(_ shape: Shape, _ counts: ClosedRange<Int>, at path: String) -> [JSON.Member] {
        var members: [JSON.Member] = [.init("type", "array"), .init("items", .object(self.members(shape, at: path)))]
        if counts.lowerBound > 0 { members.append(.init("minItems", .number(counts.lowerBound))) }
        if counts.upperBound < .max { members.append(.init("maxItems", .number(counts.upperBound))) }
        return members
    }

    private mutating func names(_ name: ValueKind, _ shape: Shape, at path: String) -> [JSON.Member] {
        var members: [JSON.Member] = [.init("type", "object")]
        if case .text(let text) = name {
            // Names don't accept `${NAME}`, because it is not replaced in names.
            if let pattern = text.pattern {
                members.append(.init("propertyNames", .object([.init("pattern", .string(pattern))])))
            } else if !text.acceptsEmpty {
                members.append(.init("propertyNames", .object([.init("minLength", 1)])))
            }
        }
        members.append(.init("additionalProperties", .object(self.members(shape, at: path + ".*"))))
        return members
    }

    private mutating func mapping(_ outline: Outline, isOpen: Bool, at path: String) -> [JSON.Member] {
        var members: [JSON.Member] = [.init("type", "object")]
        let keys = outline.keys.map { JSON.Member($0.name, .object(key($0, at: path))) }
        members.append(.init("properties", .object(keys)))
        if !isOpen { members.append(.init("additionalProperties", false)) }
        if !outline.alternatives.isEmpty {
            members.append(.init("oneOf", .array(outline.alternatives.map { Self.required([$0]) })))
        }
        return members + Self.members(outline.constraints, and: outline.cases.compactMap(Self.condition))
    }

    private mutating func key(_ key: Outline.Key, at path: String) -> [JSON.Member] {
        let path = path.isEmpty ? key.name : "\(path).\(key.name)"
        var members: [JSON.Member] = []
        if let text = descriptions[path] { members.append(.init("description", .string(text))) }
        if key.isDeprecated { members.append(.init("deprecated", true)) }
        if let usual = key.usual { members.append(.init("default", usual)) }
        return members + self.members(key.shape, at: path)
    }

    private mutating func reference(_ name: String, _ shape: Shape) -> [JSON.Member] {
        if !definitions.contains(where: { $0.name == name }) {
            let members = members(shape, at: name)
            definitions.append(.init(name, .object(members)))
        }
        return [Self.ref(name)]
    }

    // MARK: Rules

    private static func required(_ keys: [String]) -> JSON {
        .object([.init("required", JSON(keys))])
    }

    private static func members(_ constraints: Outline.Constraints, and cases: [JSON] = []) -> [JSON.Member] {
        var members: [JSON.Member] = []
        let single = constraints.needed.filter { $0.count == 1 }.flatMap { $0 }
        if !single.isEmpty { members.append(.init("required", JSON(single))) }
        if !constraints.refused.isEmpty {
            members.append(.init("properties", .object(constraints.refused.map { .init($0, false) })))
        }
        let several = constraints.needed.filter { $0.count > 1 }.map { keys in
            JSON.object([.init("anyOf", .array(keys.map { required([$0]) }))])
        }
        if !(several + cases).isEmpty { members.append(.init("allOf", .array(several + cases))) }
        return members
    }

    private static func condition(_ condition: Outline.Case) -> JSON? {
        let constraints = members(condition.constraints)
        guard !constraints.isEmpty else { return nil }
        let words = JSON.object([.init("enum", JSON(condition.words))])
        var test: [JSON.Member] = [.init("properties", .object([.init(condition.key, words)]))]
        if !condition.isUsual { test.append(.init("required", .array([.string(condition.key)]))) }
        return .object([.init("if", .object(test)), .init("then", .object(constraints))])
    }
}
