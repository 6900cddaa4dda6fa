import CurlTransport
import HTTPMessage

/// Settings for the connections of a `CurlHTTPClient`: trust, client certificate, proxy, and time limit.
public struct CurlHTTPClientSettings: Sendable, Equatable {
    /// The certificate authorities that are trusted to issue servers' certificates.
    public enum TrustAnchors: Sendable, Equatable {
        /// The authorities of the system.
        case system
        /// The authorities of the system, and those in a PEM file.
        case systemAnd(file: String)
        /// Only the authorities in a PEM file.
        case only(file: String)
    }

    /// The HTTP proxy between this program and the servers.
    public enum Proxy: Sendable, Equatable {
        /// No proxy. Ignores the environment.
        case none
        /// The proxy in `https_proxy`, `http_proxy` and `no_proxy`, by the rules of libcurl (libcurl-env(3)).
        case environment
        /// The proxy at this URL: `http://host:port` or `https://host:port`, optionally with `user:password@`.
        case url(String)
    }

    /// The certificate authorities that are trusted to issue servers' certificates.
    public var trustAnchors: TrustAnchors
    /// A PEM file with a client certificate, for servers that request a certificate; `nil`: none.
    public var certificateFile: String?
    /// A PEM file with the certificate's key; `nil`: the key is in `certificateFile`.
    public var keyFile: String?
    /// The HTTP proxy between this program and the servers.
    public var proxy: Proxy
    /// Time limit for name lookup, TCP and TLS handshake together.
    public var connectTimeout: Duration
    /// Whether to offer HTTP/2 over https (ALPN). For servers that do not speak HTTP/1.1.
    public var http2: Bool

    /// The parameters are the properties of the same names.
    public init(
        trustAnchors: TrustAnchors = .system, certificateFile: String? = nil, keyFile: String? = nil,
        proxy: Proxy = .none, connectTimeout: Duration = .seconds(5), http2: Bool = false
    ) {
        self.trustAnchors = trustAnchors
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.proxy = proxy
        self.connectTimeout = connectTimeout
        self.http2 = http2
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
        options.http2 = http2 ? .offered : .never
        return options
    }
}
