/// Source of a secret. The source may be shown, the secret must not.
public enum SecretSource: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    case literal(String)
    /// A file, which is read again before each token request.
    case file(path: String)
    case environment(name: String)
    /// A program and its arguments, run without a shell. The program prints the secret, and runs again after `refresh`.
    case command([String], refresh: Duration)

    /// Path of the file; `nil` for another source.
    public var path: String? { if case .file(let path) = self { path } else { nil } }

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
