/// The text by line and column, both from 1. Columns count characters. For messages about mistakes.
struct YAMLText {
    struct Place: Equatable {
        var line: Int
        var column: Int

        init(_ line: Int, _ column: Int) {
            self.line = line
            self.column = column
        }

        var position: Position { .file(line: line, column: column) }
    }

    private let lines: [[Unicode.Scalar]]

    init(_ yaml: [UInt8]) {
        var lines: [[Unicode.Scalar]] = [[]]
        var last: Unicode.Scalar?
        for scalar in String(decoding: yaml, as: UTF8.self).unicodeScalars {
            if scalar == "\r" || (scalar == "\n" && last != "\r") {
                lines.append([])
            } else if scalar != "\n" {
                lines[lines.count - 1].append(scalar)
            }
            last = scalar
        }
        self.lines = lines
    }

    /// `nil` behind the end of a line or of the text.
    subscript(_ place: Place) -> Unicode.Scalar? {
        guard let line = line(place.line), line.indices.contains(place.column - 1) else { return nil }
        return line[place.column - 1]
    }

    func first(_ scalar: Unicode.Scalar, from start: Place) -> Place? {
        var place = start
        while let line = line(place.line) {
            if let index = line.indices.dropFirst(place.column - 1).first(where: { line[$0] == scalar }) {
                return Place(place.line, index + 1)
            }
            place = Place(place.line + 1, 1)
        }
        return nil
    }

    /// From there to the end of its line.
    func rest(from place: Place) -> String {
        guard let line = line(place.line), place.column <= line.count else { return "" }
        return Self.text(line[(place.column - 1)...])
    }

    func text(from place: Place, upTo column: Int) -> String {
        guard let line = line(place.line), place.column < column, column - 1 <= line.count else { return "" }
        return Self.text(line[(place.column - 1)..<(column - 1)])
    }

    /// The word at that position, up to a blank or a sign that ends a value.
    func word(at place: Place) -> String {
        String(rest(from: place).prefix { !" \t,[]{}\"'".contains($0) })
    }

    /// The column of the line's first non-blank character; `nil` for an empty line and for a comment.
    func indentation(of number: Int) -> Int? {
        guard let line = line(number), let first = line.firstIndex(where: { $0 != " " && $0 != "\t" }) else {
            return nil
        }
        return line[first] == "#" ? nil : first + 1
    }

    func begins(_ place: Place) -> Bool { indentation(of: place.line) == place.column }

    /// The last line before this one with content.
    func lineBefore(_ number: Int) -> Int? {
        var line = number - 1
        while line >= 1 {
            if indentation(of: line) != nil { return line }
            line -= 1
        }
        return nil
    }

    /// The end of the list or mapping that opens there with `[` or `{`. Quotes and comments are skipped. `nil` when a
    /// later line is indented no further than its own line, unless that line begins with a closing bracket.
    func end(ofFlowAt start: Place) -> Place? {
        var open: [Unicode.Scalar] = []
        let indentation = indentation(of: start.line) ?? 1
        var place = start
        while let line = line(place.line) {
            if place.line > start.line, let begin = self.indentation(of: place.line), begin <= indentation,
                !"]}".unicodeScalars.contains(line[begin - 1])
            {
                return nil
            }
            var quote: Unicode.Scalar?
            while place.column <= line.count {
                let scalar = line[place.column - 1]
                let before = place.column > 1 ? line[place.column - 2] : " "
                if let closing = quote {
                    if scalar == closing { quote = nil }
                } else if (scalar == "\"" || scalar == "'") && " [{,:".unicodeScalars.contains(before) {
                    quote = scalar
                } else if scalar == "#" && before == " " {
                    break
                } else if scalar == "[" || scalar == "{" {
                    open.append(scalar)
                } else if scalar == "]" || scalar == "}" {
                    guard open.last == (scalar == "]" ? "[" : "{") else { return nil }
                    open.removeLast()
                    if open.isEmpty { return place }
                }
                place.column += 1
            }
            place = Place(place.line + 1, 1)
        }
        return nil
    }

    private func line(_ number: Int) -> [Unicode.Scalar]? {
        lines.indices.contains(number - 1) ? lines[number - 1] : nil
    }

    private static func text(_ scalars: some Sequence<Unicode.Scalar>) -> String {
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        return text
    }
}
