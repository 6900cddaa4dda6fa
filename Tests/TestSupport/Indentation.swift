extension String {
    /// Returns the text without empty lines, with `count` spaces before each line.
    public func indented(_ count: Int) -> String {
        split(separator: "\n").map { String(repeating: " ", count: count) + $0 }.joined(separator: "\n")
    }
}
