import Reactor

/// How one group of exchanges reaches its peers. One pool serves one security domain: connections are never shared
/// between pools, so a client certificate or trust anchor of one upstream can't serve another.
public struct PoolOptions: Sendable, Equatable {
    public enum NextProxy: Sendable, Equatable {
        case none
        /// `https_proxy`, `http_proxy`, `no_proxy` of the process, as libcurl reads them (libcurl-env(3)).
        case environment
        case url(String)
    }

    public enum TrustAnchors: Sendable, Equatable {
        case system
        /// The system's and those in a PEM file.
        case systemAnd(file: String)
        /// Those in a PEM file and no others.
        case only(file: String)
    }

    /// Name look-up, TCP and TLS handshake together.
    public var connectTimeout = Duration.seconds(5)
    /// Exchanges at once; more wait for at most `connectTimeout`.
    public var maxConnections = 256
    /// A connection older than this is not used for another exchange.
    public var maxConnectionAge = Duration.seconds(300)
    /// Offers HTTP/2 by ALPN on https.
    public var http2 = false
    public var nextProxy = NextProxy.none
    public var trustAnchors = TrustAnchors.system
    /// PEM files of a client certificate and its key.
    public var certificateFile: String?
    public var keyFile: String?
    /// What stood in those files, and in that of the trust anchors, when it was good last; `nil`: libcurl reads them.
    public var material: TLSMaterial?
    /// Chunked answers of HTTP/1.1 come as they are, framing and trailers included, for a delegate that reads them more
    /// strictly than libcurl does.
    public var keepsChunks = false
    /// What answers hold is wiped from libcurl's and OpenSSL's buffers, which are small for it.
    var wipesAnswers = false
    public var addressPolicy = AddressPolicy()
    /// Counts the connections; pools of the same loop may share it.
    public var counts: ConnectionCounts?
    /// Looks names up.
    public var names = NameResolver.shared
    /// An exchange is over as soon as its connection stands: see `Dialer`.
    var endsConnected = false

    public init() {}
}

/// Where an exchange goes: what is dialled and, for https, checked.
public struct Origin: Sendable, Hashable {
    public enum Scheme: String, Sendable { case http, https }
    public var scheme: Scheme
    /// Canonical host, IPv6 in brackets.
    public var host: String
    public var port: UInt16
    /// Name for SNI and the certificate instead of `host`.
    public var serverName: String?

    public init(scheme: Scheme, host: String, port: UInt16, serverName: String? = nil) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.serverName = serverName
    }

    var url: String { "\(scheme.rawValue)://\(serverName ?? host):\(port)/" }
    /// For CURLOPT_CONNECT_TO(3): dials the host under the server name.
    var connectTo: String? { serverName.map { "\($0):\(port):\(host):\(port)" } }
}
