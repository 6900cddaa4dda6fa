/// The admin port: the page, the probes, the socket of the command line.
public struct AdminSettings: Sendable, Equatable {
    public var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8081)
    /// `nil`: the default path, see the design of the admin socket.
    public var socket: String?
    public var hosts: [String] = []
    public var token: SecretSource?
    public init() {}
}
