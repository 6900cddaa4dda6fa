import HTTPMessage

/// Pattern for the hosts and ports of an upstream's requests.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// Whether one or more labels must precede `host`.
    public var wildcard: Bool
    /// The canonical host; for a wildcard, the part after `*.`.
    public var host: Authority.Host
    /// The only port; `nil` if the pattern matches ports 80 and 443.
    public var port: UInt16?

    public init(wildcard: Bool, host: Authority.Host, port: UInt16?) {
        self.wildcard = wildcard
        self.host = host
        self.port = port
    }

    public var description: String { (wildcard ? "*." : "") + Authority(host: host, port: port).description }
}
