/// Finds the environment variables that a configuration names. It searches the tree of nodes, not the settings, so that
/// it misses no variable.
enum VariableNames {
    /// Keys of mappings with free names. An entry `env` of such a mapping does not name a variable.
    private static let freelyNamed = ["params", "headers", "labels", "users"]

    static func inside(_ node: Node, under key: String = "") -> Set<String> {
        switch node.content {
        case .scalar(let scalar):
            return scalar.verbatim ? [] : Substitution.names(in: scalar.text)
        case .sequence(let elements):
            return elements.reduce(into: []) { $0.formUnion(inside($1)) }
        case .mapping(let entries):
            return entries.reduce(into: []) { names, entry in
                names.formUnion(inside(entry.value, under: entry.key))
                if entry.key == "env", !freelyNamed.contains(key), case .scalar(let scalar) = entry.value.content,
                    Substitution.isName(scalar.text)
                {
                    names.insert(scalar.text)
                }
            }
        }
    }
}
