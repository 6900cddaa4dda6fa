extension String {
    /// Each line that is not empty, with so many spaces before it.
    public func indented(_ count: Int) -> String {
        split(separator: "\n").map { String(repeating: " ", count: count) + $0 }.joined(separator: "\n")
    }
}
