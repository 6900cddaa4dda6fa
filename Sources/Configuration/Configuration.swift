import HTTPMessage

/// The whole configuration, checked: every reference resolves, every value is in range.
/// Plain values; safe to hand to any thread.
public struct Configuration: Sendable, Equatable {
    public var proxy = ProxySettings()
    /// `nil`: there is no admin port.
    public var admin: AdminSettings?
    public var log = LogSettings()
    /// Extra trust anchors (a PEM file) for every outgoing connection, added to the system's.
    public var trustAnchorsFile: String?
    public var store = StoreSettings.memory
    /// In the order of the file.
    public var clients: [ClientSettings] = []
    /// In the order of the file.
    public var upstreams: [UpstreamSettings] = []
    /// The embedded authorization server and API on loopback.
    public var playground = false

    public init() {}
}

/// Where a listener binds.
public enum ListenAddress: Sendable, Hashable {
    /// `host` is a numeric address or a name; port 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    case unix(path: String, mode: UInt16?)
}

/// A value that must not be shown. Where it comes from may be.
public enum SecretSource: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible {
    case literal(String)
    /// Read anew before each token request.
    case file(path: String)
    case environment(name: String)

    public var description: String {
        switch self {
        case .literal: "<redacted>"
        case .file(let path): "file \(path)"
        case .environment(let name): "environment variable \(name)"
        }
    }
    public var debugDescription: String { description }
}

/// TLS towards one peer. All `nil`: the system's trust anchors, no client certificate.
public struct TLSSettings: Sendable, Equatable {
    /// Replaces the system's trust anchors for this peer.
    public var caFile: String?
    public var certFile: String?
    public var keyFile: String?
    /// Name for SNI and certificate checks instead of the host's.
    public var serverName: String?
    public init() {}
}

/// The proxy in between, for one leg.
public enum NextProxy: Sendable, Equatable {
    case none
    /// `https_proxy` / `http_proxy` / `no_proxy` of the process.
    case environment
    case url(String)
}

public struct ProxySettings: Sendable, Equatable {
    public enum Unmatched: Sendable, Equatable { case reject, forward }
    public enum Connect: Sendable, Equatable { case reject, tunnel }

    public var listen: [ListenAddress] = [.tcp(host: "127.0.0.1", port: 8080)]
    public var threads = 1
    public var open = false
    public var users: [String: SecretSource] = [:]
    public var unmatched = Unmatched.reject
    public var connect = Connect.reject
    /// `host:port` pairs, or `["*"]`.
    public var tunnels: [String] = []
    /// CIDR blocks.
    public var privateNetworks: [String] = []
    public var headerTimeout = Duration.seconds(10)
    public var idleTimeout = Duration.seconds(60)
    public var maxHeaderBytes = 64 * 1024
    /// `nil`: no limit.
    public var maxBodyBytes: Int?
    public var maxConnections = 1024
    public var drainTimeout = Duration.seconds(8)
    public init() {}
}

public struct AdminSettings: Sendable, Equatable {
    public var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8081)
    /// `nil`: the default path, see the design of the admin socket.
    public var socket: String?
    public var hosts: [String] = []
    public var token: SecretSource?
    public init() {}
}

public struct LogSettings: Sendable, Equatable {
    public enum Level: String, Sendable, Equatable, CaseIterable { case trace, debug, info, notice, warning, error }
    public enum Format: String, Sendable, Equatable, CaseIterable { case text, json }
    public var level = Level.info
    public var format = Format.text
    public var access = true
    public init() {}
}

public enum StoreSettings: Sendable, Equatable {
    case memory
    case file(directory: String, key: SecretSource)
}

/// One OAuth client.
public struct ClientSettings: Sendable, Equatable {
    public enum GrantType: Sendable, Equatable {
        case clientCredentials, password, refreshToken, authorizationCode, implicit, deviceCode
        /// Any other grant type, by its URI (RFC 6749, section 4.5).
        case `extension`(String)
    }
    public enum AuthMethod: String, Sendable, Equatable, CaseIterable {
        case clientSecretBasic = "client_secret_basic"
        case clientSecretPost = "client_secret_post"
        case clientSecretJWT = "client_secret_jwt"
        case privateKeyJWT = "private_key_jwt"
        case tlsClientAuth = "tls_client_auth"
        case selfSignedTLSClientAuth = "self_signed_tls_client_auth"
        case none
    }
    public enum BasicEncoding: String, Sendable, Equatable, CaseIterable { case form, percent, raw }

    public var name: String
    public var grantType = GrantType.clientCredentials
    public var issuer: String?
    public var tokenEndpoint: String?
    public var authorizationEndpoint: String?
    public var revocationEndpoint: String?
    public var deviceAuthorizationEndpoint: String?
    public var clientID = ""
    public var clientSecret: SecretSource?
    public var authMethod = AuthMethod.none
    public var basicEncoding = BasicEncoding.form
    public var treatAsBearer: [String] = []
    public var redirectURI: String?
    public var scope: [String] = []
    public var resource: [String] = []
    public var audience: String?
    /// In the order of the file.
    public var params: [NameValue] = []
    public var headers: [NameValue] = []
    public var username: String?
    public var password: SecretSource?
    public var refreshToken: SecretSource?
    public var defaultExpiresIn = Duration.seconds(300)
    public var defaultTokenType: String?
    public var refreshBefore = Duration.seconds(60)
    public var timeout = Duration.seconds(10)
    public var proxy = NextProxy.none
    public var tls = TLSSettings()
    public var allowDeprecated = false
    public var allowPlaintext = false
    public var labels: [NameValue] = []

    public init(name: String) { self.name = name }
}

public struct NameValue: Sendable, Equatable {
    public var name: String
    public var value: String
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// One rule: which requests it is for, and where they go with which token.
public struct UpstreamSettings: Sendable, Equatable {
    public enum Injection: Sendable, Equatable {
        case header(name: String, scheme: String)
        case query(name: String)
    }
    public enum OnExisting: String, Sendable, Equatable, CaseIterable { case replace, keep, reject }
    public enum OnUnauthorized: String, Sendable, Equatable, CaseIterable { case replay, pass }

    /// `api.example.com`, `*.example.com`, `[::1]:8443`, canonical. Also the upstream's name in logs and metrics.
    public var host: HostPattern
    /// Whole-segment prefixes; empty: every path.
    public var paths: [String] = []
    /// Empty: every method.
    public var methods: [String] = []
    /// Name of the OAuth client; `nil`: forwarded unsigned.
    public var client: String?
    public var listen: ListenAddress?
    /// Further `Host` values that the upstream's own `listen` answers to.
    public var hosts: [String] = []
    public var browsers = false
    /// Where it goes. `nil` for a wildcard host without `url`: https to the host that was asked for.
    public var url: UpstreamURL?
    public var injection = Injection.header(name: "Authorization", scheme: "Bearer")
    public var onExisting = OnExisting.replace
    public var onUnauthorized = OnUnauthorized.replay
    public var maxReplayBytes = 64 * 1024
    public var allowDeprecated = false
    public var allowPlaintext = false
    public var tokenWait = Duration.seconds(10)
    public var connectTimeout = Duration.seconds(5)
    /// `nil`: off.
    public var responseTimeout: Duration? = .seconds(60)
    /// `nil`: off.
    public var idleTimeout: Duration? = .seconds(60)
    public var maxConnections = 256
    public var maxConnectionAge = Duration.seconds(300)
    public var http2 = false
    public var proxy = NextProxy.none
    public var tls = TLSSettings()

    public init(host: HostPattern) { self.host = host }
}

/// Which authorities an upstream is for.
public struct HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// `true`: one or more labels in front of `host`.
    public var wildcard: Bool
    /// Canonical; the part behind `*.` for a wildcard.
    public var host: Authority.Host
    /// `nil`: 80 and 443.
    public var port: UInt16?

    public init(wildcard: Bool, host: Authority.Host, port: UInt16?) {
        self.wildcard = wildcard
        self.host = host
        self.port = port
    }

    public var description: String { (wildcard ? "*." : "") + Authority(host: host, port: port).description }
}

/// An upstream's `url`, taken apart.
public struct UpstreamURL: Sendable, Equatable, CustomStringConvertible {
    public enum Scheme: String, Sendable, Equatable { case http, https }
    public var scheme: Scheme
    /// Canonical; `port` is `nil` for the scheme's default one.
    public var authority: Authority
    /// Put in front of every path verbatim; empty or starts with `/` and does not end with one.
    public var path: String
    public init(scheme: Scheme, authority: Authority, path: String) {
        self.scheme = scheme
        self.authority = authority
        self.path = path
    }
    public var description: String { "\(scheme.rawValue)://\(authority)\(path)" }
}
