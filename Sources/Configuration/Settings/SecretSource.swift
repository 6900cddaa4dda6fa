/// A value that must not be shown. Where it comes from may be.
public enum SecretSource: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    case literal(String)
    /// Read anew before each token request.
    case file(path: String)
    case environment(name: String)

    public var description: String {
        switch self {
        case .literal: "<redacted>"
        case .file(let path): "file \(path)"
        case .environment(let name): "environment variable \(name)"
        }
    }
    public var debugDescription: String { description }
}
