import HTTPMessage

/// An upstream's `url`, parsed.
public struct UpstreamURL: Sendable, Equatable, CustomStringConvertible {
    public enum Scheme: String, Sendable, Equatable { case http, https }
    public var scheme: Scheme
    /// Canonical; `port` is `nil` for the scheme's default one.
    public var authority: Authority
    /// Prefix of every path, unchanged; empty, or starts with `/` and does not end with one.
    public var path: String
    public var description: String { "\(scheme.rawValue)://\(authority)\(path)" }
}
