/// Collects faults while the readers continue, so that all faults are reported together. Also holds the environment,
/// and the operator's spelling of settings. Use it on one thread, for one configuration.
final class Diagnostics {
    let file: String
    let environment: [String: String]
    /// Environment variables by the path of the key that each sets; empty if there is a file.
    let variables: [String: String]

    private(set) var keyUses = KeyUses()
    private var found: [ConfigurationError.Problem] = []
    private var doubts: [ConfigurationError.Problem] = []

    init(file: String, environment: [String: String], variables: [String: String] = [:]) {
        self.file = file
        self.environment = environment
        self.variables = variables
    }

    func error(_ position: Position, _ message: String) { found.append(problem(position, message)) }

    func warn(_ position: Position, _ message: String) { doubts.append(problem(position, message)) }

    /// - Parameter label: beginning of messages about this key or certificate.
    func note(_ content: KeyUse.Content, name: String, label: String, at position: Position) {
        keyUses.all.append(KeyUse(content: content, name: name, location: problem(position, label)))
    }

    /// - Parameter name: as in `KeyUses.opened`.
    func note(opened name: String, at position: Position) { keyUses.opened[name] = problem(position, "") }

    var hasErrors: Bool { !found.isEmpty }
    var failure: ConfigurationError { ConfigurationError(problems: Self.inOrder(found), warnings: warnings) }
    var warnings: [ConfigurationError.Problem] { Self.inOrder(doubts) }

    /// Returns the operator's spelling of `key: value` in the section at `path`.
    func spelling(of key: String, in path: String, as value: String) -> String {
        if let variable = variables[path + "." + key] { return "\(variable)=\(value)" }
        return "`\(key): \(value)`"
    }

    /// Returns the name of a key for messages: its full path, or its environment variable.
    func name(of path: String) -> String { variables[path] ?? path }

    /// Resolves a path of the configuration. Relative paths start at the configuration file's folder.
    func resolve(path: String) -> String {
        guard !path.hasPrefix("/"), variables.isEmpty, let slash = file.lastIndex(of: "/") else { return path }
        return String(file[...slash]) + path
    }

    private func problem(_ position: Position, _ message: String) -> ConfigurationError.Problem {
        switch position {
        case .file(let line, let column): .init(file: file, line: line, column: column, message: message)
        case .variable(let name): .init(file: name, message: message)
        case .whole: .init(file: file, message: message)
        }
    }

    private static func inOrder(_ problems: [ConfigurationError.Problem]) -> [ConfigurationError.Problem] {
        problems.enumerated().sorted { one, other in
            (one.element.line ?? 0, one.element.column ?? 0, one.offset)
                < (other.element.line ?? 0, other.element.column ?? 0, other.offset)
        }.map(\.element)
    }
}
