/// A value that must not be shown. Where it comes from may be.
public enum SecretSource: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    case literal(String)
    /// Read anew before each token request.
    case file(path: String)
    case environment(name: String)
    /// A program that prints it and its arguments, never a shell; run again each `refresh`.
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
