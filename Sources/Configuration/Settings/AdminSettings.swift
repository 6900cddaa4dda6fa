public import HTTPMessage

/// Settings of the administration: the admin port, and the socket of the command line.
public struct AdminSettings: Sendable, Equatable {
    public var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8081)
    /// Path of the socket; `nil` for the default path (see "The socket" in docs/administration.md).
    public var socket: String?
    /// Additional hosts that the admin port accepts in `Host`.
    public var hosts: [Authority.Host] = []
    /// Address of the page behind a front, without a slash at its end; `nil`: that of the listener.
    public var url: String?
    public var token: SecretSource?
    /// Whether the last requests are kept, for people.
    public var showsRequests = true
    /// Whether `POST /quitquitquit` ends the proxy.
    public var quits = false
}
