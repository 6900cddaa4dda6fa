/// The source of a secret. The source may be shown, the secret may not.
public enum SecretSource: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    case literal(String)
    /// Read again before each token request.
    case file(path: String)
    case environment(name: String)
    /// A program and its arguments, never a shell. It prints the secret, and runs again after each `refresh`.
    case command([String], refresh: Duration)

    public var description: String {
        switch self {
        case .literal: "<redacted>"
        case .file(let path): "file \(path)"
        case .environment(let name): "environment variable \(name)"
        case .command(let words, _): "command \(words.first ?? "")"
        }
    }
    public var debugDescription: String { description }
}
