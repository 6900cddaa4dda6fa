import HTTPMessage

/// An upstream's `url`, parsed.
public struct UpstreamURL: Sendable, Equatable, CustomStringConvertible {
    public enum Scheme: String, Sendable, Equatable { case http, https }
    public var scheme: Scheme
    /// Canonical; `port` is `nil` for the scheme's default one.
    public var authority: Authority
    /// Prefix of every path, unchanged; empty, or starts with `/` and does not end with one.
    public var path: String
    public init(scheme: Scheme, authority: Authority, path: String) {
        self.scheme = scheme
        self.authority = authority
        self.path = path
    }
    public var description: String { "\(scheme.rawValue)://\(authority)\(path)" }
}
