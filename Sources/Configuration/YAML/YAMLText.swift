/// The text by line and column, both counted from 1, to explain mistakes. A column is a Unicode scalar.
struct YAMLText {
    struct Location: Equatable {
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

    var end: Location { Location(lines.count, (lines.last?.count ?? 0) + 1) }

    /// Returns the character; `nil` behind the end of a line or of the text.
    subscript(_ location: Location) -> Unicode.Scalar? {
        guard let line = line(location.line), line.indices.contains(location.column - 1) else { return nil }
        return line[location.column - 1]
    }

    func first(_ scalar: Unicode.Scalar, from start: Location) -> Location? {
        var location = start
        while let line = line(location.line) {
            if let index = line.indices.dropFirst(location.column - 1).first(where: { line[$0] == scalar }) {
                return Location(location.line, index + 1)
            }
            location = Location(location.line + 1, 1)
        }
        return nil
    }

    /// Returns the text from the location to the end of its line.
    func rest(from location: Location) -> String {
        guard let line = line(location.line), location.column <= line.count else { return "" }
        return Self.text(line[(location.column - 1)...])
    }

    func text(from location: Location, upTo column: Int) -> String {
        guard let line = line(location.line), location.column < column, column - 1 <= line.count else { return "" }
        return Self.text(line[(location.column - 1)..<(column - 1)])
    }

    /// Returns the word at that position, up to a blank or a character that ends a value.
    func word(at location: Location) -> String {
        String(rest(from: location).prefix { !" \t,[]{}\"'".contains($0) })
    }

    /// Returns the column of the line's first non-blank character; `nil` for an empty line and for a comment.
    func indentation(of number: Int) -> Int? {
        guard let line = line(number), let first = line.firstIndex(where: { $0 != " " && $0 != "\t" }) else {
            return nil
        }
        return line[first] == "#" ? nil : first + 1
    }

    func isLineStart(_ location: Location) -> Bool { indentation(of: location.line) == location.column }

    /// Returns the number of the last line with content before this line.
    func lineBefore(_ number: Int) -> Int? {
        var line = number - 1
        while line >= 1 {
            if indentation(of: line) != nil { return line }
            line -= 1
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
