public import HTTPMessage

/// The admin port: the page, the probes, the socket of the command line.
public struct AdminSettings: Sendable, Equatable {
    public var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8081)
    /// `nil`: the default path, see "The socket" in docs/administration.md.
    public var socket: String?
    /// Additional hosts that the admin port answers to.
    public var hosts: [Authority.Host] = []
    public var token: SecretSource?
    /// Whether `POST /quitquitquit` ends the proxy.
    public var quits = false
}
