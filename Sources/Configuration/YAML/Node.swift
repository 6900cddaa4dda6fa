/// A piece of a configuration as it was written, with its place: what every reader below works on.
/// Knows no YAML library.
struct Node {
    enum Content {
        case scalar(Scalar)
        case sequence([Node])
        case mapping([Entry])
    }

    struct Scalar {
        var text: String
        /// Written without quotes; only then do `~`, `null` and nothing mean "no value".
        var plain: Bool
        /// `${NAME}` stays as it is: the text came from the environment already.
        var verbatim = false
    }

    struct Entry {
        var key: String
        var keyPosition: Position
        var value: Node
    }

    var position: Position
    var content: Content

    /// For messages: what the operator wrote, by kind.
    var kind: String {
        switch content {
        case .scalar: isNull ? "nothing" : "a single value"
        case .sequence: "a list"
        case .mapping: "a mapping"
        }
    }

    var isNull: Bool {
        guard case .scalar(let scalar) = content, scalar.plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.text)
    }

    var isTilde: Bool { if case .scalar(let scalar) = content { isNull && scalar.text == "~" } else { false } }
}

extension Node {
    /// Of a value that stands where keys should: `threads:1`, `threads 1`.
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

/// Where something was written.
enum Position: Equatable {
    case file(line: Int, column: Int)
    case variable(String)
    /// The file as a whole.
    case whole

    var line: Int? { if case .file(let line, _) = self { line } else { nil } }

    /// For messages that name a second place.
    var inWords: String {
        switch self {
        case .file(let line, _): "line \(line)"
        case .variable(let name): name
        case .whole: "the default"
        }
    }
}
