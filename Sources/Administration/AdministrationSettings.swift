public import HTTPMessage
public import Heimdallr
public import Reactor
public import Reports

/// Where the administration listens, and whom it answers.
public struct AdministrationSettings: Sendable {
    /// A numeric address or a name.
    public var host: String
    /// 0 lets the kernel choose.
    public var port: UInt16
    /// What the command line talks to, an absolute path; `nil`: `AdminSocket.defaultPath`.
    public var socket: String?
    /// Further hosts that the page, `/status` and `/events` answer to.
    public var hosts: [Authority.Host] = []
    /// What the page asks for once, and `/status` and `/events` want as a bearer token too; read anew for each request.
    /// `nil`: nothing.
    public var token: (any SecretProvider)?
    /// `$XDG_RUNTIME_DIR`.
    public var runtimeDirectory: String?
    /// Where the proxies of a fleet find each other's logins; `nil`: a login ends where it began.
    public var pendingLogins: (any PendingLoginStore)?
    /// Listening sockets that the process was started with.
    public var passed = PassedSockets()
    /// What they are called that may be anywhere: the port's, and the socket's.
    public var passedNames = (port: "admin", socket: "admin-socket")

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// `127.0.0.1:8081`
    var shown: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

extension AdministrationSettings {
    /// Where servers send browsers back to, unless a client says otherwise; with `PORT` where the kernel will choose it.
    public static func redirectURI(host: String, port: UInt16) -> String {
        LoginAddresses.base(host: host, port: port == 0 ? "PORT" : "\(port)") + "/callback"
    }
}

/// What is administered: the clients by their own objects, the rest by closures that ask the proxy.
public struct AdministrationSources: Sendable {
    /// One OAuth client.
    public struct Client: Sendable {
        public var heimdallr: Heimdallr
        /// Gets its tokens without a person.
        public var isUnattended: Bool
        /// Where the authorization server sends the browser back to; `nil`: `/callback` of the admin port.
        public var redirectURI: String?
        public var issuer: String?
        /// As configured, without its query; `nil`: from the issuer's metadata.
        public var tokenEndpoint: String?
        /// Where its last request to the server went, and why it failed where it did.
        public var lastRequest: @Sendable () -> LastTokenRequest = { LastTokenRequest() }

        public init(
            _ heimdallr: Heimdallr, isUnattended: Bool, redirectURI: String? = nil, issuer: String? = nil
        ) {
            self.heimdallr = heimdallr
            self.isUnattended = isUnattended
            self.redirectURI = redirectURI
            self.issuer = issuer
        }
    }

    /// One rule of the configuration, for people who want to use it.
    public struct Rule: Sendable, Equatable {
        /// The upstream's name and its client, as in `UpstreamTraffic`.
        public var upstream: String
        public var client: String?
        /// Where its requests go; `nil`: to the host that was asked for.
        public var destination: String?
        /// What is put on them, and where: kinds and names, never values; empty when they go unsigned.
        public var injection: String
        /// A command that makes such a request.
        public var example: String

        public init(upstream: String, client: String?, destination: String?, injection: String, example: String) {
            self.upstream = upstream
            self.client = client
            self.destination = destination
            self.injection = injection
            self.example = example
        }
    }

    /// As `heimdallr-proxy --version` says it.
    public var version: String
    /// In the order of the configuration.
    public var clients: [Client]
    /// In the order of the configuration.
    public var rules: [Rule] = []
    /// Returns once every loop of the proxy has had a turn.
    public var pulse: @Sendable () async -> Void
    /// The upstreams' counters, now.
    public var traffic: @Sendable () async -> TrafficReport
    /// Where a request of this method to this URL would go.
    public var route: @Sendable (_ method: String, _ url: String) async -> RouteExplanation
    /// What a program gets that wants this client's token while there is none, and why there is none.
    public var refusal: @Sendable (_ client: String, _ error: HeimdallrError, _ signIn: SignInHint) -> TokenRefusal = {
        TokenRefusal(status: 503, title: "\($1)", loginURL: $2.url)
    }
    /// Whom the proxy serves; empty: everybody.
    public var users: [String] = []
    /// Reads the configuration again, for the command of that name; returns when it is in use, or refused.
    public var reload: @Sendable () async -> ReloadAnswer = {
        ReloadAnswer(isGood: false, text: "The proxy has only just started: try again.\n")
    }
    /// Whether the configuration file has changed since it was read.
    public var hasConfigurationChanged: @Sendable () async -> Bool = { false }
    /// Has the proxy stop, for `POST /quitquitquit`; `nil`: there is no such path.
    public var quit: (@Sendable () -> Void)?
    /// What somebody may have meant who wrote a name that is none of these.
    public var nearest: @Sendable (_ written: String, _ known: [String]) -> String? = { _, _ in nil }
    /// When certificates end, but for those that upstreams show.
    public var certificates: @Sendable () -> [CertificateEnd] = { [] }
    /// Changes the log's level for a while, or shows it (`nil`), for the command of that name: what to say, and whether it
    /// was done.
    public var logLevel: @Sendable (_ wanted: (level: String, time: String?)?) -> (isGood: Bool, text: String) = { _ in
        (false, "error: this proxy's log has no level\n")
    }
    /// Lines of the audit stream; `nil`: there is none.
    public var audit: @Sendable () -> AuditCounts? = { nil }
    /// How often things were read again.
    public var reloads = ReloadCounts()
    /// What became of spans; `nil`: there are none.
    public var spans: @Sendable () -> SpanReport? = { nil }

    public init(
        version: String, clients: [Client], pulse: @escaping @Sendable () async -> Void,
        traffic: @escaping @Sendable () async -> TrafficReport,
        route: @escaping @Sendable (_ method: String, _ url: String) async -> RouteExplanation
    ) {
        self.version = version
        self.clients = clients
        self.pulse = pulse
        self.traffic = traffic
        self.route = route
    }

    func client(named name: String) -> Client? { clients.first { $0.heimdallr.name == name } }
}
