/// PEM files for TLS connections of programs, at a listener or inside CONNECT.
public struct ListenerTLS: Sendable, Hashable {
    /// File with the proxy's certificate, followed by its intermediate certificates.
    public var certFile: String
    public var keyFile: String
    /// File with authorities for client certificates. If it is set, each client must present a certificate.
    public var clientCAFile: String?
}

extension Configuration {
    /// Returns the TLS settings of a listener; `nil` for plain HTTP.
    /// - Parameter upstream: index of the upstream that has this listener; `nil` for `proxy.listen`.
    public func tls(of address: ListenAddress, upstream: Int?) -> ListenerTLS? {
        if let upstream { return upstreams[upstream].listenerTLS }
        return proxy.listenerTLS[address.endpoint]
    }

    /// TLS settings of all listeners and intercepted hosts, without duplicates.
    public var allServerTLS: Set<ListenerTLS> {
        Set(proxy.listenerTLS.values).union(
            upstreams.flatMap { [$0.listenerTLS, $0.serverCertificate].compactMap(\.self) })
    }
}
