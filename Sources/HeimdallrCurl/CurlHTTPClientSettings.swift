import CurlTransport

/// How a `CurlHTTPClient` of its own reaches its peers.
public struct CurlHTTPClientSettings: Sendable, Equatable {
    public enum TrustAnchors: Sendable, Equatable {
        /// The system's.
        case system
        /// The system's and those in a PEM file.
        case systemAnd(file: String)
        /// Those in a PEM file and no others.
        case only(file: String)
    }

    public enum Proxy: Sendable, Equatable {
        case none
        /// `https_proxy`, `http_proxy` and `no_proxy` of the process.
        case environment
        /// `http://host:port` or `https://host:port`, with `user:password@` in front of the host where it wants that.
        case url(String)
    }

    /// Whose certificates are believed.
    public var trustAnchors: TrustAnchors
    /// PEM files of a client certificate and its key, for servers that ask for one.
    public var certificateFile: String?
    public var keyFile: String?
    /// What stands between.
    public var proxy: Proxy
    /// TCP and TLS handshake together.
    public var connectTimeout: Duration

    public init(
        trustAnchors: TrustAnchors = .system, certificateFile: String? = nil, keyFile: String? = nil,
        proxy: Proxy = .none, connectTimeout: Duration = .seconds(5)
    ) {
        self.trustAnchors = trustAnchors
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.proxy = proxy
        self.connectTimeout = connectTimeout
    }

    var options: PoolOptions {
        var options = PoolOptions()
        switch trustAnchors {
        case .system: options.trustAnchors = .system
        case .systemAnd(let file): options.trustAnchors = .systemAnd(file: file)
        case .only(let file): options.trustAnchors = .only(file: file)
        }
        switch proxy {
        case .none: options.nextProxy = .none
        case .environment: options.nextProxy = .environment
        case .url(let url): options.nextProxy = .url(url)
        }
        options.certificateFile = certificateFile
        options.keyFile = keyFile
        options.connectTimeout = connectTimeout
        return options
    }
}
