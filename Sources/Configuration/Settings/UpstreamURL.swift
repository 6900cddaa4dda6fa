import HTTPMessage

/// The parsed `url` of an upstream.
public struct UpstreamURL: Sendable, Equatable, CustomStringConvertible {
    public var scheme: Scheme
    /// Canonical host and port. The port is `nil` for the scheme's default port.
    public var authority: Authority
    /// Prefix of all paths, as written. It is empty, or starts with `/` and does not end with `/`.
    public var path: String
    public var description: String { "\(scheme.rawValue)://\(authority)\(path)" }
}
