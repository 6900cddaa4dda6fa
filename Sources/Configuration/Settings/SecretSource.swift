/// Source of a secret. The source may be shown, the secret must not.
public enum SecretSource: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    case literal(String)
    /// A file, which is read again before each token request.
    case file(path: String)
    case environment(name: String)
    /// A program and its arguments, run without a shell. The program prints the secret, and runs again after `refresh`.
    case command([String], refresh: Duration)
    case remote(RemoteSecret)

    /// Path of the file; `nil` for another source.
    public var path: String? { if case .file(let path) = self { path } else { nil } }

    /// Whether only the running proxy reads it: a check runs no command and asks no server.
    public var isReadByProxy: Bool {
        switch self {
        case .literal, .file, .environment: false
        case .command, .remote: true
        }
    }

    /// The client whose token its server is asked with; `nil` for none.
    public var client: String? {
        guard case .remote(.vault(let settings)) = self, case .role(_, _, .client(let name)) = settings.login else {
            return nil
        }
        return name
    }

    /// Environment variables from which it comes.
    public var variables: [String] {
        switch self {
        case .literal, .file, .command: []
        case .environment(let name): [name]
        case .remote(let remote): remote.variables + remote.nested.flatMap(\.variables)
        }
    }

    public var description: String {
        switch self {
        case .literal: "<redacted>"
        case .file(let path): "file \(path)"
        case .environment(let name): "environment variable \(name)"
        case .command(let words, _): "command \(words.first ?? "")"
        case .remote(let remote): remote.description
        }
    }
    public var debugDescription: String { description }
}
