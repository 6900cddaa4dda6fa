/// A node of the configuration with its position, independent of the YAML library. Input of all readers.
struct Node {
    enum Content {
        case scalar(Scalar)
        case sequence([Node])
        case mapping([Entry])
    }

    struct Scalar {
        var text: String
        /// Written without quotes. Only then do `~`, `null` and an empty text mean "no value".
        var plain: Bool
        /// `${NAME}` is not replaced, because the text comes from the environment.
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

    /// The items of a list; a single value counts as a list of one.
    var elements: [Node] { if case .sequence(let elements) = content { elements } else { [self] } }

    var isNull: Bool {
        guard case .scalar(let scalar) = content, scalar.plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.text)
    }
}

extension Node {
    /// Advice for a value in the position of keys: `threads:1`, `threads 1`.
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
    /// `{host:a}`.
    var missingSpace: (position: Position, advice: String)? {
        guard case .file(let line, let column) = keyPosition, let tight = YAMLMistake.tightColon(key) else {
            return nil
        }
        return (.file(line: line, column: column + tight + 1), "; a space is missing here, behind the colon")
    }
}

/// Position in the configuration.
enum Position: Equatable {
    case file(line: Int, column: Int)
    case variable(String)
    /// The file as a whole.
    case whole

    /// For messages that name a second location.
    var inWords: String {
        switch self {
        case .file(let line, _): "line \(line)"
        case .variable(let name): name
        case .whole: "the default"
        }
    }
}
