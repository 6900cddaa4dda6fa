import HTTPMessage
import Reactor

/// Options for connections to the peers of one security domain. Pools share no connections, so the client certificate
/// and trust anchors of one upstream never apply to another.
public struct PoolOptions: Sendable, Equatable {
    /// Use of HTTP/2 in whole requests (`BufferedClient`).
    public enum HTTP2: Sendable {
        case never
        /// Over https, if the server agrees (ALPN).
        case offered
        /// Always, without negotiation.
        case known
    }

    public enum TrustAnchors: Sendable, Hashable {
        case system
        /// The system's anchors and the anchors in a PEM file.
        case systemAnd(file: String)
        case only(file: String)
    }

    /// Total time for name look-up, TCP and TLS handshake.
    public var connectTimeout = Duration.seconds(5)
    /// Limit of connections. Further requests wait for at most `connectTimeout`.
    public var maxConnections = 256
    /// Age after which a connection serves no further exchange.
    public var maxConnectionAge = Duration.seconds(300)
    /// Time after which an idle connection over HTTP/1.1 serves no further exchange: servers, and those in between, may
    /// have forgotten it. Counts suspension.
    public var maxIdleTime = Duration.seconds(60)
    public var nextProxy = NextProxy.none
    /// Path of a Unix socket on which the server listens, for whole requests; `nil`: the server has an address.
    public var unixSocket: String?
    public var http2 = HTTP2.never
    public var trustAnchors = TrustAnchors.system
    /// PEM files of a client certificate and its key.
    public var certificateFile: String?
    public var keyFile: String?
    /// Last good content of these files and of the trust anchors; `nil` makes libcurl read the files.
    public var material: TLSMaterial?
    public var addressPolicy = AddressPolicy()
    /// Counters of connections. Pools of one loop may share an object.
    public var counts: ConnectionCounts?
    public var names = NameResolver.shared

    public init() {}

    /// Number of changes of all files that decide whom connections trust, and as whom they come.
    var trustGeneration: UInt64 { (material?.generation ?? 0) &+ SystemAuthorities.shared.generation }
}

/// Target of an exchange: the address to dial and, for https, the name to check.
public struct Origin: Sendable, Hashable {
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

    /// `nil` for a text that is no http or https URL.
    public init?(url text: String) {
        guard let url = try? WebURL(text, allowing: .fragment) else { return nil }
        self.init(url.scheme, url.authority)
    }

    public init(_ scheme: Scheme, _ authority: Authority, serverName: String? = nil) {
        self.init(
            scheme: scheme, host: authority.host.description, port: authority.port(for: scheme), serverName: serverName)
    }

    var url: String { "\(scheme.rawValue)://\(serverName ?? host):\(port)/" }
    /// Value for CURLOPT_CONNECT_TO(3), by which libcurl dials `host` for the URL's server name.
    var connectTo: String? { serverName.map { "\($0):\(port):\(host):\(port)" } }
}
