/// A node of the configuration with its position, independent of the YAML library. Readers get such nodes.
struct Node {
    enum Content {
        case scalar(Scalar)
        case sequence([Node])
        case mapping([Entry])
    }

    struct Scalar {
        var text: String
        /// Whether the value is written without quotes. Only then do `~`, `null` and an empty text mean "no value".
        var plain: Bool
        /// Whether the text comes from the environment. Then `${NAME}` in it is not replaced.
        var verbatim = false
    }

    struct Entry {
        var key: String
        var keyPosition: Position
        var value: Node
    }

    var position: Position
    var content: Content

    /// Kind of the operator's value, for messages.
    var kind: String {
        switch content {
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        case .mapping: "a mapping"
        }
    }

    /// Elements of a list. Any other node counts as a list with one element.
    var elements: [Node] { if case .sequence(let elements) = content { elements } else { [self] } }

    var isNull: Bool {
        guard case .scalar(let scalar) = content, scalar.plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.text)
    }
}

extension Node {
    /// Advice for text in place of a mapping, such as `threads:1` or `threads 1`, and the position of the fault.
    var missingColon: (position: Position, advice: String)? {
        guard case .file(let line, let column) = position, case .scalar(let scalar) = content, scalar.plain else {
            return nil
        }
        if let tight = YAMLMistake.tightColon(scalar.text) {
            return (.file(line: line, column: column + tight + 1), "; a space is missing here, behind the colon")
        }
        let key = scalar.text.unicodeScalars.prefix { $0 != " " }
        guard key.count < scalar.text.unicodeScalars.count else { return nil }
        return (.file(line: line, column: column + key.count), "; a colon is missing here, behind the key")
    }
}

extension Node.Entry {
    /// Advice for a key in braces that has its value within, as in `{host:a}` and `{host a}`; and the fault's position.
    var missingSpace: (position: Position, advice: String)? {
        let node = Node(position: keyPosition, content: .scalar(.init(text: key, plain: true)))
        return node.missingColon
    }
}

/// Position of a setting in the configuration.
enum Position: Equatable {
    case file(line: Int, column: Int)
    case variable(String)
    /// The configuration as a whole, or a default value.
    case whole

    /// Text for messages that name a second position.
    var inWords: String {
        switch self {
        case .file(let line, _): "line \(line)"
        case .variable(let name): name
        case .whole: "the default"
        }
    }
}
