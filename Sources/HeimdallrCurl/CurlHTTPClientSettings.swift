import CurlTransport

/// How a `CurlHTTPClient` reaches servers, and whom it trusts.
public struct CurlHTTPClientSettings: Sendable, Equatable {
    /// The certificate authorities that servers' certificates are checked against.
    public enum TrustAnchors: Sendable, Equatable {
        /// Those of the system.
        case system
        /// Those of the system, and those in a PEM file.
        case systemAnd(file: String)
        /// Those in a PEM file, and no others.
        case only(file: String)
    }

    /// The HTTP proxy between this program and the servers.
    public enum Proxy: Sendable, Equatable {
        /// No proxy, whatever the environment says.
        case none
        /// The proxy of `https_proxy`, `http_proxy` and `no_proxy`, read as by libcurl (libcurl-env(3)).
        case environment
        /// This one: `http://host:port` or `https://host:port`, optionally with `user:password@`.
        case url(String)
    }

    /// The certificate authorities that servers' certificates are checked against.
    public var trustAnchors: TrustAnchors
    /// A PEM file with a client certificate, for servers that ask for one. `nil`: none.
    public var certificateFile: String?
    /// A PEM file with the certificate's key. `nil`: the key is in `certificateFile`.
    public var keyFile: String?
    /// The HTTP proxy between this program and the servers.
    public var proxy: Proxy
    /// How long name lookup, TCP and TLS handshake may take together.
    public var connectTimeout: Duration

    /// The parameters are the properties of the same names.
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
