/// The schemes of URIs that the proxy acts on.
public enum Scheme: String, Sendable, Hashable {
    case http
    case https

    /// RFC 9110 4.2.1, 4.2.2.
    public var defaultPort: UInt16 { self == .http ? 80 : 443 }
}
