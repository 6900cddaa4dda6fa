/// Explains a YAML parser's fault where its message does not show the mistake: quotes, tabs, signs, colons, look-alikes.
struct YAMLMistake {
    typealias Location = YAMLText.Location
    typealias Fault = YAMLEvents.Fault

    /// Position of a scalar in the text.
    struct Scalar {
        var start: Location
        /// Position after the last character.
        var end: Location
        var isQuoted: Bool
    }

    let text: YAMLText
    /// The parser's message. `location` is its position.
    let problem: String
    let location: Location
    /// The parser's context. `start` is its position.
    let context: String
    let start: Location?
    /// The last scalar before the fault.
    let lastScalar: Scalar?

    var fault: Fault {
        // Brackets and quotes without an end: the mistake is where they begin.
        let isOpen = context.contains("flow") || context.contains("quoted")
        return lookAlike ?? quote ?? tab ?? sign ?? colon
            ?? Fault(
                isOpen ? start ?? location : location, [problem, context].filter { !$0.isEmpty }.joined(separator: " "))
    }

    // MARK: Look-alikes

    /// A look-alike character in the indentation of the line.
    private var lookAlike: Fault? {
        for column in 1... {
            let location = Location(location.line, column)
            guard let scalar = text[location] else { return nil }
            if let found = LookAlike(scalar) { return found.fault(at: location) }
            guard scalar == " " else { return nil }
        }
        return nil
    }

    // MARK: Quotes

    /// A quoted value that ends too late, at the next quote in the text, or too early, at a quote within it.
    private var quote: Fault? {
        if context == "while scanning a quoted scalar", let start { return openQuote(at: start) }
        guard let scalar = lastScalar, scalar.isQuoted, scalar.end.line == location.line else { return nil }
        if scalar.start.line < scalar.end.line { return openQuote(at: scalar.start) }
        guard scalar.end == location, problem.hasPrefix("did not find expected") else { return nil }
        return Fault(
            scalar.start,
            "the quote that opens here is closed in column \(scalar.end.column - 1), in the middle of the value: put the "
                + "value in the other kind of quotes")
    }

    private func openQuote(at location: Location) -> Fault {
        let mark = text[location] == "'" ? "'" : "\""
        return Fault(location, "the quote that opens here is not closed: write \(mark) behind the value")
    }

    // MARK: Tabs and signs

    private var tab: Fault? {
        guard text[location] == "\t" else { return nil }
        return Fault(location, "there is a tab here: indent with spaces")
    }

    private var sign: Fault? {
        if context == "while scanning an alias", let start {
            // Only a host is shown, because other text may be a secret.
            let word = text.word(at: start)
            let example = word.hasPrefix("*.") ? ", \"\(word)\"" : ""
            return Fault(
                position: start.position,
                message: "put a value that starts with * in quotes\(example); aliases are not supported")
        }
        guard problem == "found character that cannot start any token", let sign = text[location] else { return nil }
        return Fault(location, "put a value that starts with \(sign) in quotes")
    }

    // MARK: Colons

    private var colon: Fault? {
        if context == "while scanning a simple key", let start { return Self.missingColon(in: text, at: start) }
        if context == "while scanning a plain scalar" {
            return Fault(location, "this value holds a colon: put it in quotes, or write a space behind a key's colon")
        }
        guard problem.hasPrefix("mapping values are not allowed") else { return nil }
        if let scalar = lastScalar, !scalar.isQuoted, scalar.start.line < location.line {
            // YAML has joined lines: either a key lacks its colon, or the next line is indented too far.
            // The first key of a list's item stands behind the dash: the next key is below it, not below the dash.
            if text.isLineStart(scalar.start) || text.indentation(of: location.line) == scalar.start.column {
                return Self.missingColon(in: text, at: scalar.start)
            }
            return tooFar(Location(location.line, text.indentation(of: location.line) ?? 1))
        }
        if let indentation = text.indentation(of: location.line), let before = text.lineBefore(location.line),
            let above = text.indentation(of: before), indentation > above,
            !text.text(from: Location(location.line, 1), upTo: location.column).contains(": ")
        {
            return tooFar(Location(location.line, indentation))
        }
        return Fault(
            location,
            "a second key can't stand in this line: put a value that contains \": \" in quotes, or write the key "
                + "on a separate line")
    }

    /// Explains a line without a usable colon: `threads 1`, `threads:1`, `threads`.
    static func missingColon(in text: YAMLText, at start: Location) -> Fault {
        let line = text.rest(from: start)
        if let tight = tightColon(line) {
            let location = Location(start.line, start.column + tight + 1)
            if let found = text[location].flatMap({ LookAlike($0) }) { return found.fault(at: location) }
            return Fault(location, "a space is missing here, behind the colon of a key")
        }
        let key = line.prefix { $0 != " " && $0 != "\t" }
        return Fault(
            Location(start.line, start.column + key.unicodeScalars.count),
            "a colon is missing here, behind the key: write `key: value`")
    }

    /// Returns the index of the colon in `key:value`, which lacks a space; `nil` for other text, such as `http://x`.
    static func tightColon(_ line: String) -> Int? {
        let scalars = Array(line.unicodeScalars)
        guard let colon = scalars.firstIndex(of: ":"), colon > 0, colon + 1 < scalars.count,
            scalars[..<colon].allSatisfy({ $0.properties.isAlphabetic || "0123456789_-.".unicodeScalars.contains($0) }),
            scalars[..<colon].contains(where: \.properties.isAlphabetic)
        else { return nil }
        return scalars[colon + 1] == "/" || scalars[colon + 1] == " " ? nil : colon
    }

    // MARK: Indentation

    /// Finds a list item that YAML has joined to the value above it.
    static func foldedItem(in text: YAMLText, _ value: Scalar) -> Fault? {
        for line in (value.start.line + 1)...max(value.start.line + 1, value.end.line) {
            guard let column = text.indentation(of: line), text[Location(line, column)] == "-",
                [" ", nil].contains(text[Location(line, column + 1)])
            else { continue }
            let first = text.indentation(of: value.start.line) ?? 1
            let advice =
                text[Location(value.start.line, first)] == "-"
                ? "begin it in column \(first), as line \(value.start.line)"
                : "write the value of line \(value.start.line) as an item of the list, too, or remove that value"
            return Fault(
                Location(line, column),
                "this list item is indented so far that it is part of the value in line \(value.start.line): \(advice)")
        }
        return nil
    }

    func tooFar(_ location: Location) -> Fault {
        var advice = "indent it like the lines around it"
        if let before = text.lineBefore(location.line), let column = text.indentation(of: before) {
            advice =
                "begin it in column \(column), like line \(before); if it belongs to line \(before), end line \(before) with a colon"
        }
        return Fault(location, "this line is indented too far: \(advice)")
    }
}

extension YAMLEvents.Fault {
    init(_ location: YAMLText.Location, _ message: String) {
        self.init(position: location.position, message: "not valid YAML: \(message)")
    }
}
