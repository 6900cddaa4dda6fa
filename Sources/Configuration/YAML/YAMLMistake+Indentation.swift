// Mistakes of indentation.
extension YAMLMistake {
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

    var structure: Fault? {
        guard problem.hasPrefix("did not find expected") else { return nil }
        if problem.hasSuffix("expected key"), text[location] == ":" {
            return Fault(location, "a key is missing in front of this colon")
        }
        guard text.isLineStart(location) else {
            return Fault(location, "this can't stand behind the value: remove it, or put the value in quotes")
        }
        let begins = start.map { " in column \($0.column)" } ?? ""
        if problem.contains("'-'") {
            return Fault(
                location,
                "this is neither a new item of the list\(begins) nor a key of the item above: write `- ` in front, or indent it "
                    + "like that item's first key")
        }
        if text[location] == "-", text[Location(location.line, location.column + 1)] == " " {
            return Fault(location, "a list item can't stand among keys: write a key above it, or leave out the `- `")
        }
        var columns: [Int] = []
        if let start { columns.append(start.column) }
        if let before = text.lineBefore(location.line), let column = text.indentation(of: before),
            !columns.contains(column)
        {
            columns.append(column)
        }
        let places = columns.map(String.init).joined(separator: " or ")
        return Fault(
            location,
            "this line's indentation fits no line above it"
                + (places.isEmpty ? "" : ": begin it in column \(places), like the lines it belongs to"))
    }
}
