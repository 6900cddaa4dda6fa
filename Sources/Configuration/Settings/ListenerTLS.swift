/// TLS towards programs, by PEM files: of a listener, or inside CONNECT.
public struct ListenerTLS: Sendable, Hashable {
    /// The proxy's own certificate first, then those that lead to its issuer.
    public var certFile: String
    public var keyFile: String
    /// Authorities of the clients' certificates. Each client has to show one. `nil`: no client is asked for one.
    public var clientCAFile: String?
}

extension Configuration {
    /// TLS of a listener; `nil`: plain HTTP.
    /// - Parameter upstream: index of the upstream whose own listener it is; `nil` for `proxy.listen`.
    public func tls(of address: ListenAddress, upstream: Int?) -> ListenerTLS? {
        if let upstream { return upstreams[upstream].listenerTLS }
        return proxy.listenerTLS[address.endpoint]
    }

    /// All certificates for programs that the configuration names, each once.
    public var allServerTLS: Set<ListenerTLS> {
        Set(proxy.listenerTLS.values).union(
            upstreams.flatMap { [$0.listenerTLS, $0.serverCertificate].compactMap(\.self) })
    }
}
