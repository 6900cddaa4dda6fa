/// A file with a client's token, for programs outside the proxy.
public struct TokenFileSettings: Sendable, Equatable {
    /// Absolute path.
    public var path: String
    public var mode: UInt16 = 0o600
    /// Name or number; `nil` for the process's own group.
    public var group: String?
    /// Name of a `TokenFormat`.
    public var format = "plain"
}
