/// Explains the mistake that caused a YAML parser's fault. The parser reports its own expectation, often a line after
/// the mistake.
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
    /// Positions of all `[` and `{` that are still open.
    let openFlows: [Location]

    var fault: Fault {
        lookAlike ?? quote ?? tab ?? flow ?? sign ?? behindQuote ?? document ?? colon ?? structure
            ?? Fault(location, [context, problem].filter { !$0.isEmpty }.joined(separator: ", "))
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

    private var quote: Fault? {
        if context == "while scanning a quoted scalar", problem.hasPrefix("found unexpected"), let start {
            return openQuote(at: start)
        }
        if context == "while parsing a quoted scalar", let start { return escape(in: start) }
        // The last value lacks its closing quote. The next quote in the text, some lines later, has closed the value.
        if let scalar = lastScalar, scalar.isQuoted, scalar.start.line < scalar.end.line,
            scalar.end.line == location.line
        {
            return openQuote(at: scalar.start)
        }
        return nil
    }

    private func openQuote(at location: Location) -> Fault {
        Fault(location, "the quote that opens here is not closed: write \(mark(at: location)) behind the value")
    }

    private func escape(in start: Location) -> Fault {
        var location = location
        while location.column > 1, text[location] != "\\" { location.column -= 1 }
        return Fault(
            location,
            "YAML has no such escape: write \\\\ for a backslash, or put the value in ' quotes")
    }

    /// Text behind a closed quote, as in `'it's'` or `"a" b`.
    private var behindQuote: Fault? {
        guard let scalar = lastScalar, scalar.isQuoted, scalar.end.line == location.line,
            problem.hasPrefix("did not find expected")
        else { return nil }
        if scalar.end == location {
            let quote = mark(at: scalar.start)
            let inside = quote == "'" ? "write '' for each ' within it" : "write \\\" for each \" within it"
            let other = quote == "'" ? "\"" : "'"
            return Fault(
                scalar.start,
                "the quote that opens here is closed in column \(scalar.end.column - 1), in the middle of the value: "
                    + "\(inside), or put it in \(other) quotes")
        }
        let between = text.text(from: scalar.end, upTo: location.column)
        guard between.utf8.allSatisfy({ $0 == 0x20 || $0 == 0x09 }), !openFlows.isEmpty || !text.isLineStart(location)
        else {
            return nil
        }
        if openFlows.isEmpty {
            return Fault(
                location, "this stands behind the quote that ends the value: remove it, or put all of it in quotes")
        }
        return Fault(location, "a comma is missing in front of this, or this belongs inside the quotes")
    }

    private func mark(at location: Location) -> String { text[location] == "'" ? "'" : "\"" }

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
        if problem == "found character that cannot start any token" { return startingSign(at: location) }
        let contexts = [
            "while scanning an anchor", "while scanning a block scalar", "while scanning a tag", "while parsing a tag",
        ]
        if contexts.contains(context), let start { return startingSign(at: start) }
        if problem == "found undefined tag handle" { return startingSign(at: start ?? location) }
        if problem.hasPrefix("mapping keys are not allowed") { return startingSign(at: location) }
        if problem.hasPrefix("block sequence entries are not allowed") {
            return Fault(
                location, "a list with - needs separate lines below the key; on this line, write [a, b]")
        }
        return nil
    }

    private func startingSign(at location: Location) -> Fault {
        let sign = text[location].map(String.init) ?? ""
        return Fault(location, "put a value that starts with \(sign) in quotes")
    }

    // MARK: Brackets

    private var flow: Fault? {
        if let open = openFlows.last(where: { text.end(ofFlowAt: $0) == nil }),
            context.hasPrefix("while parsing a flow") || location.line > open.line
        {
            return openFlow(at: open)
        }
        if context.hasPrefix("while parsing a flow") { return behindQuote ?? inFlow }
        guard problem.hasPrefix("did not find expected"), openFlows.isEmpty, let sign = text[location] else {
            return nil
        }
        if sign == "]" || sign == "}" {
            return Fault(
                location, "no \(sign == "]" ? "[" : "{") opens what this closes: remove it, or put the value in quotes")
        }
        if sign == "," { return Fault(location, "put a value that starts with , in quotes") }
        return nil
    }

    private func openFlow(at open: Location) -> Fault {
        let sign = text[open] == "{" ? "{" : "["
        let closing = sign == "{" ? "}" : "]"
        return Fault(open, "the \(sign) that opens here is not closed: write \(closing) behind its last value")
    }

    /// A fault between brackets that are closed later.
    private var inFlow: Fault {
        if text[location] == ":" {
            return Fault(
                location,
                "this colon can't stand here: put a value that contains \": \" in quotes, or write a comma before its key"
            )
        }
        if context == "while parsing a flow node" { return Fault(location, "a value is missing in front of this") }
        return Fault(location, "a comma is missing in front of this, or the value needs quotes")
    }

    // MARK: Documents

    private var document: Fault? {
        if context == "while scanning a directive" || problem.contains("YAML document") || problem.contains("directive")
        {
            return directive(at: Location((start ?? location).line, 1))
        }
        guard problem == "did not find expected <document start>" else { return nil }
        if let before = text.lineBefore(location.line) {
            if text[Location(before, 1)] == "%" { return directive(at: Location(before, 1)) }
            if text.rest(from: Location(before, 1)).hasPrefix("...") {
                return Fault(Location(before, 1), "... ends the document here: remove it")
            }
        }
        if !text.isLineStart(location) {
            return Fault(location, "this stands behind the document's only value: write `key: value` lines")
        }
        return Fault(location, "this line is indented less than the first one: begin both in the same column")
    }

    private func directive(at location: Location) -> Fault {
        Fault(location, "lines that begin with % are not supported: remove this line, or put the value in quotes")
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
            if text.isLineStart(scalar.start) { return Self.missingColon(in: text, at: scalar.start) }
            return tooFar(Location(location.line, text.indentation(of: location.line) ?? 1))
        }
        if text.rest(from: Location(location.line, 1)).hasPrefix("--- ") {
            return Fault(Location(location.line, 1), "write --- on a separate line, or leave it out")
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
}

extension YAMLEvents.Fault {
    init(_ location: YAMLText.Location, _ message: String) {
        self.init(position: location.position, message: "not valid YAML: \(message)")
    }
}
