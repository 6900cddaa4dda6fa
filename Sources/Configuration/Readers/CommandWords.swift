extension Section {
    /// Reads a program and its arguments. Arguments may repeat and be empty.
    /// - Parameter isSearched: whether a program's name without a path must be in `PATH` already.
    func command(_ key: String, isSearched: Bool = false) -> [String] {
        tell(key, .list(.value(of: Grammar.any), 1...Int.max))
        guard let node = node(key) else { return [] }
        guard case .sequence(let elements) = node.content, !elements.isEmpty else {
            error(key, "write a list: [program, argument, …]; no shell reads it")
            return []
        }
        let words = elements.compactMap { text($0, key) }
        guard words.count == elements.count, let program = words.first else { return [] }
        if diagnostics.isForPrograms { return words }
        if let fault = Files.programFault(program) {
            error(elements[0], key, "\(fault), not \"\(Self.shown(program))\"")
        } else if isSearched, !program.contains("/"), !Files.isInPath(program, diagnostics.environment["PATH"]) {
            error(
                elements[0], key,
                "there is no program \"\(Self.shown(program))\" in PATH: install it, or write its absolute path")
        }
        if let index = words.firstIndex(where: { $0.utf8.contains(0) }) {
            error(elements[index], key, "an argument can't hold a NUL byte")
        }
        return words
    }
}
