import HTTPMessage

/// The authorities of an upstream.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// Matches one or more labels in front of `host`.
    public var wildcard: Bool
    /// Canonical; the part behind `*.` for a wildcard.
    public var host: Authority.Host
    /// `nil`: 80 and 443.
    public var port: UInt16?

    public init(wildcard: Bool, host: Authority.Host, port: UInt16?) {
        self.wildcard = wildcard
        self.host = host
        self.port = port
    }

    public var description: String { (wildcard ? "*." : "") + Authority(host: host, port: port).description }
}
