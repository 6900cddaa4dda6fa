/// Explains a person's mistake behind a YAML parser's fault. The parser reports its expectation, often a line after the
/// mistake.
struct YAMLMistake {
    typealias Place = YAMLText.Place
    typealias Fault = YAMLEvents.Fault

    /// A scalar as it was written.
    struct Scalar {
        var start: Place
        /// Behind its last character.
        var end: Place
        var isQuoted: Bool
    }

    let text: YAMLText
    /// The parser's message and its position.
    let problem: String
    let place: Place
    /// The parser's context, and its start.
    let context: String
    let start: Place?
    /// The last scalar in front of the fault.
    let lastScalar: Scalar?
    /// Positions of each `[` and `{` that is still open.
    let openFlows: [Place]

    var fault: Fault {
        lookAlike ?? quote ?? tab ?? flow ?? sign ?? behindQuote ?? document ?? colon ?? structure
            ?? Fault(place, [context, problem].filter { !$0.isEmpty }.joined(separator: ", "))
    }

    // MARK: Look-alikes

    /// In the indentation of the line.
    private var lookAlike: Fault? {
        for column in 1... {
            let place = Place(place.line, column)
            guard let scalar = text[place] else { return nil }
            if let found = LookAlike(scalar) { return found.fault(at: place) }
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
        // The quote was closed only by the next one, lines later.
        if let scalar = lastScalar, scalar.isQuoted, scalar.start.line < scalar.end.line, scalar.end.line == place.line
        {
            return openQuote(at: scalar.start)
        }
        return nil
    }

    private func openQuote(at place: Place) -> Fault {
        Fault(place, "the quote that opens here is not closed: write \(mark(at: place)) behind the value")
    }

    private func escape(in start: Place) -> Fault {
        var place = place
        while place.column > 1, text[place] != "\\" { place.column -= 1 }
        return Fault(
            place,
            "this is no escape that YAML knows: write \\\\ for a backslash, or put the value in ' quotes, where it stands "
                + "for itself")
    }

    /// `'it's'`, `"a" b`.
    private var behindQuote: Fault? {
        guard let scalar = lastScalar, scalar.isQuoted, scalar.end.line == place.line,
            problem.hasPrefix("did not find expected")
        else { return nil }
        if scalar.end == place {
            let quote = mark(at: scalar.start)
            let inside = quote == "'" ? "write '' for each ' within it" : "write \\\" for each \" within it"
            let other = quote == "'" ? "\"" : "'"
            return Fault(
                scalar.start,
                "the quote that opens here is closed in column \(scalar.end.column - 1), in the middle of the value: "
                    + "\(inside), or put it in \(other) quotes")
        }
        let between = text.text(from: scalar.end, upTo: place.column)
        guard between.utf8.allSatisfy({ $0 == 0x20 || $0 == 0x09 }), !openFlows.isEmpty || !text.begins(place) else {
            return nil
        }
        if openFlows.isEmpty {
            return Fault(
                place, "this stands behind the quote that ends the value: remove it, or put all of it in quotes")
        }
        return Fault(place, "a comma is missing in front of this, or it belongs into the quotes")
    }

    private func mark(at place: Place) -> String { text[place] == "'" ? "'" : "\"" }

    // MARK: Tabs and signs

    private var tab: Fault? {
        guard text[place] == "\t" else { return nil }
        return Fault(place, "a tab stands here: indent with spaces")
    }

    private var sign: Fault? {
        if context == "while scanning an alias", let start {
            // A host may be shown. Other text may be a secret.
            let word = text.word(at: start)
            let example = word.hasPrefix("*.") ? ", \"\(word)\"" : ""
            return Fault(
                position: start.position,
                message: "put a value that starts with * in quotes\(example); aliases are not supported")
        }
        if problem == "found character that cannot start any token" { return startingSign(at: place) }
        let contexts = [
            "while scanning an anchor", "while scanning a block scalar", "while scanning a tag", "while parsing a tag",
        ]
        if contexts.contains(context), let start { return startingSign(at: start) }
        if problem == "found undefined tag handle" { return startingSign(at: start ?? place) }
        if problem.hasPrefix("mapping keys are not allowed") { return startingSign(at: place) }
        if problem.hasPrefix("block sequence entries are not allowed") {
            return Fault(
                place, "a list that begins with - wants lines of its own below the key; in this line write [a, b]")
        }
        return nil
    }

    private func startingSign(at place: Place) -> Fault {
        let sign = text[place].map(String.init) ?? ""
        return Fault(place, "put a value that starts with \(sign) in quotes")
    }

    // MARK: Brackets

    private var flow: Fault? {
        if let open = openFlows.last(where: { text.end(ofFlowAt: $0) == nil }),
            context.hasPrefix("while parsing a flow") || place.line > open.line
        {
            return openFlow(at: open)
        }
        if context.hasPrefix("while parsing a flow") { return behindQuote ?? inFlow }
        guard problem.hasPrefix("did not find expected"), openFlows.isEmpty, let sign = text[place] else { return nil }
        if sign == "]" || sign == "}" {
            return Fault(
                place, "no \(sign == "]" ? "[" : "{") opens what this closes: remove it, or put the value in quotes")
        }
        if sign == "," { return Fault(place, "put a value that starts with , in quotes") }
        return nil
    }

    private func openFlow(at open: Place) -> Fault {
        let sign = text[open] == "{" ? "{" : "["
        let closing = sign == "{" ? "}" : "]"
        return Fault(open, "the \(sign) that opens here is not closed: write \(closing) behind its last value")
    }

    /// The fault between closed brackets.
    private var inFlow: Fault {
        if text[place] == ":" {
            return Fault(
                place,
                "this colon can't stand here: put a value that contains \": \" in quotes, or write a comma before its key"
            )
        }
        if context == "while parsing a flow node" { return Fault(place, "a value is missing in front of this") }
        return Fault(place, "a comma is missing in front of this, or the value wants quotes")
    }

    // MARK: Documents

    private var document: Fault? {
        if context == "while scanning a directive" || problem.contains("YAML document") || problem.contains("directive")
        {
            return directive(at: Place((start ?? place).line, 1))
        }
        guard problem == "did not find expected <document start>" else { return nil }
        if let before = text.lineBefore(place.line) {
            if text[Place(before, 1)] == "%" { return directive(at: Place(before, 1)) }
            if text.rest(from: Place(before, 1)).hasPrefix("...") {
                return Fault(Place(before, 1), "... ends the document here: remove it")
            }
        }
        if !text.begins(place) {
            return Fault(place, "this stands behind the document's only value: write `key: value` lines")
        }
        return Fault(place, "this line is indented less than the first one: begin both in the same column")
    }

    private func directive(at place: Place) -> Fault {
        Fault(place, "lines that begin with % are not supported: remove it, or put it in quotes")
    }

    // MARK: Colons

    private var colon: Fault? {
        if context == "while scanning a simple key", let start { return Self.missingColon(in: text, at: start) }
        if context == "while scanning a plain scalar" {
            return Fault(place, "this holds a colon: put it in quotes, or write a space behind the colon of a key")
        }
        guard problem.hasPrefix("mapping values are not allowed") else { return nil }
        if let scalar = lastScalar, !scalar.isQuoted, scalar.start.line < place.line {
            // The lines were joined: either this line is no key, or the next one is indented too far.
            if text.begins(scalar.start) { return Self.missingColon(in: text, at: scalar.start) }
            return tooFar(Place(place.line, text.indentation(of: place.line) ?? 1))
        }
        if text.rest(from: Place(place.line, 1)).hasPrefix("--- ") {
            return Fault(Place(place.line, 1), "write --- in a line of its own, or leave it out")
        }
        if let indentation = text.indentation(of: place.line), let before = text.lineBefore(place.line),
            let above = text.indentation(of: before), indentation > above, !lineHasEarlierColon
        {
            return tooFar(Place(place.line, indentation))
        }
        return Fault(
            place,
            "a second key can't stand in this line: put a value that contains \": \" in quotes, or write the key in a line of "
                + "its own")
    }

    private var lineHasEarlierColon: Bool {
        text.text(from: Place(place.line, 1), upTo: place.column).contains(": ")
    }

    /// `threads 1`, `threads:1`, `threads`.
    static func missingColon(in text: YAMLText, at start: Place) -> Fault {
        let line = text.rest(from: start)
        if let tight = tightColon(line) {
            let place = Place(start.line, start.column + tight + 1)
            if let found = text[place].flatMap({ LookAlike($0) }) { return found.fault(at: place) }
            return Fault(place, "a space is missing here, behind the colon of a key")
        }
        let key = line.prefix { $0 != " " && $0 != "\t" }
        return Fault(
            Place(start.line, start.column + key.unicodeScalars.count),
            "a colon is missing here, behind the key: write `key: value`")
    }

    /// Position of the colon in `key:value` that needs a space; not of one in an address such as `http://x` or `a:80`.
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
    init(_ place: YAMLText.Place, _ message: String) {
        self.init(position: place.position, message: "not valid YAML: \(message)")
    }
}
