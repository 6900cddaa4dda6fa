/// Collects faults and warnings while the readers continue, so that all are reported together. Also has the environment
/// variables, and the names of settings for messages. Use it on one thread, for one configuration.
final class Diagnostics {
    let file: String
    let environment: [String: String]
    /// Name of the environment variable that sets a key, by the key's path; empty for a configuration file.
    let variables: [String: String]
    /// Whether a program's user reads the configuration, to use the proxy. The secrets and variables of the proxy are not
    /// theirs, so none is missed.
    let isForPrograms: Bool

    private(set) var keyUses = KeyUses()
    private(set) var clientUses: [(name: String, position: Position, label: String)] = []
    private var unsortedFaults: [ConfigurationError.Problem] = []
    private var unsortedWarnings: [ConfigurationError.Problem] = []

    init(
        file: String, environment: [String: String], variables: [String: String] = [:], isForPrograms: Bool = false
    ) {
        self.isForPrograms = isForPrograms
        self.file = file
        self.environment = environment
        self.variables = variables
    }

    /// - Parameter awaited: path of a file that causes the fault, and may come later.
    func error(_ position: Position, _ message: String, awaiting awaited: String? = nil) {
        var fault = problem(position, message)
        fault.mayPass = awaited.map(AwaitedFile.isAwaited) ?? false
        unsortedFaults.append(fault)
    }

    func warn(_ position: Position, _ message: String) { unsortedWarnings.append(problem(position, message)) }

    /// - Parameter label: beginning of messages about this key or certificate.
    func note(_ content: KeyUse.Content, name: String, label: String, at position: Position) {
        keyUses.all.append(KeyUse(content: content, name: name, location: problem(position, label)))
    }

    /// Records the position of a section or listener that the proxy opens at its start.
    /// - Parameter name: name of the section, or address of the listener.
    func note(opened name: String, at position: Position) { keyUses.opened[name] = problem(position, "") }

    /// Records a client whose token a secret is asked with.
    /// - Parameter label: beginning of messages about the key that names it.
    func note(client name: String, at position: Position, label: String) {
        clientUses.append((name, position, label))
    }

    var hasErrors: Bool { !unsortedFaults.isEmpty }
    var failure: ConfigurationError { ConfigurationError(problems: Self.inOrder(unsortedFaults), warnings: warnings) }
    var warnings: [ConfigurationError.Problem] { Self.inOrder(unsortedWarnings) }

    /// Returns `key: value` as the operator writes it in the section at `path`: in YAML, or as `VARIABLE=value`.
    func spelling(of key: String, in path: String, as value: String) -> String {
        if let variable = variables[path + "." + key] { return "\(variable)=\(value)" }
        return "`\(key): \(value)`"
    }

    /// Returns the name of a key for messages: its full path, or its environment variable.
    func shownName(of path: String) -> String { variables[path] ?? path }

    /// Resolves the path of a file or folder. A relative path starts at the configuration file's folder, if any.
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
