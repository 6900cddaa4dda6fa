public import HTTPMessage
public import Heimdallr
public import Reactor
public import Reports

/// Addresses of the administration, and its access rules.
public struct AdministrationSettings: Sendable {
    /// Address to listen on: a numeric address or a name.
    public var host: String
    /// Port to listen on; with 0 the kernel chooses.
    public var port: UInt16
    /// Absolute path of the socket for the command line; `nil` for `AdminSocket.prepareDefault`.
    public var socket: String?
    /// Additional hosts by which the page, `/status` and `/events` may be requested.
    public var hosts: [Authority.Host] = []
    /// Address of the page behind a front, without a slash at its end; `nil`: that of the listener.
    public var url: String?
    /// Source of `admin.token`, read for each request. A browser sends the token once, a program in each request.
    public var token: (any SecretProvider)?
    /// `$XDG_RUNTIME_DIR`.
    public var runtimeDirectory: String?
    /// Store that the proxies of a fleet share for logins; `nil` if a login must end at the proxy where it began.
    public var pendingLogins: (any PendingLoginStore)?
    /// Listening sockets inherited from the service manager.
    public var passed = PassedSockets()
    /// Names of the inherited sockets. The names decide if no address matches: see `PassedSockets`.
    public var passedNames = (port: "admin", socket: "admin-socket")

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// `127.0.0.1:8081`
    var shown: String { shown(port: port) }

    func shown(port: UInt16) -> String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

extension AdministrationSettings {
    /// Returns the default redirect URI. Its port is the word `PORT` if the kernel chooses the port.
    public static func redirectURI(host: String, port: UInt16, url: String? = nil) -> String {
        (url ?? LoginAddresses.base(host: host, port: port == 0 ? "PORT" : "\(port)")) + "/callback"
    }
}

/// Sources of the administration: the clients, and closures that ask the proxy.
public struct AdministrationSources: Sendable {
    /// One OAuth client.
    public struct Client: Sendable {
        public var heimdallr: Heimdallr
        /// Whether the client gets its tokens without a person.
        public var isUnattended: Bool
        /// Configured redirect URI; `nil` for `/callback` of the admin port.
        public var redirectURI: String?
        public var issuer: String?
        /// Whether programs may have the client's tokens.
        public var isExportable = false
        /// Returns the state of the client's token file; `nil`: it has none.
        public var file: @Sendable () -> TokenFileReport? = { nil }
        /// Configured token endpoint, without its query; `nil` if the issuer's metadata names it.
        public var tokenEndpoint: String?
        /// Returns the URL of the client's last request to the server, and the cause if the request failed.
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

    /// One rule of the configuration, with an example of its use.
    public struct Rule: Sendable, Equatable {
        /// Names of the upstream and its client, as in `UpstreamTraffic`.
        public var upstream: String
        public var client: String?
        /// Destination of the rule's requests; `nil` for the requested host.
        public var destination: String?
        /// Kinds and names of the injected credentials, without values; empty if there are none.
        public var injection: String
        /// A command that sends a request for this rule.
        public var example: String

        public init(upstream: String, client: String?, destination: String?, injection: String, example: String) {
            self.upstream = upstream
            self.client = client
            self.destination = destination
            self.injection = injection
            self.example = example
        }
    }

    public var version: String
    /// In the order of the configuration.
    public var clients: [Client] { didSet { places = Self.places(clients) } }
    public var rules: [Rule] = [] { didSet { ruleTable = RuleTable(rules) } }
    /// Places of the clients by their names.
    private var places: [String: Int]
    private(set) var ruleTable = RuleTable()
    /// Returns when every event loop of the proxy has responded.
    public var pulse: @Sendable () async -> Void
    public var traffic: @Sendable () async -> TrafficReport
    /// Returns the last requests, or those after the counts of an earlier report; `nil` if none are kept.
    public var requests: (@Sendable (_ seen: [UInt64]) async -> RecentRequests)?
    /// Explains the route of a request.
    public var route: @Sendable (_ method: String, _ url: String, _ fields: [String]) async -> RouteExplanation
    /// Returns the answer that a program gets while this client has no token.
    public var refusal: @Sendable (_ client: String, _ error: HeimdallrError, _ signIn: SignInHint) -> TokenRefusal = {
        TokenRefusal(status: 503, title: "\($1)", loginURL: $2.url)
    }
    /// Whether the proxy serves one program, which could ask the admin socket for tokens.
    public var servesOneProgram = false
    /// Notes that a program got a token.
    public var exported: @Sendable (ExportReport) -> Void = { _ in }
    /// Names in `proxy.users`; empty if the proxy requires no user.
    public var users: [String] = []
    /// Reads the configuration again. Returns when the configuration is in use or rejected.
    public var reload: @Sendable () async -> ReloadAnswer = {
        ReloadAnswer(isGood: false, text: "The proxy has only just started: try again.\n")
    }
    public var hasConfigurationChanged: @Sendable () async -> Bool = { false }
    /// Returns the files of certificates and keys whose newer content can't be used, each with the reason.
    public var unusedFiles: @Sendable () async -> [String] = { [] }
    /// Stops the proxy, for `POST /quitquitquit`; `nil` if that path is off.
    public var quit: (@Sendable () -> Void)?
    /// Returns the known name that a misspelt name probably means.
    public var nearest: @Sendable (_ written: String, _ known: [String]) -> String? = { _, _ in nil }
    /// Returns the end times of all certificates except those of upstreams.
    public var certificates: @Sendable () -> [CertificateEnd] = { [] }
    /// Changes the log level for a while; with `nil`, only shows the level.
    public var logLevel: @Sendable (_ wanted: (level: String, time: String?)?) -> (isGood: Bool, text: String) = { _ in
        (false, "error: this proxy's log has no level\n")
    }
    /// Returns programs that recently refused the proxy's certificate, the latest first.
    public var untrusting: @Sendable () -> [UntrustingProgram] = { [] }
    /// Counts of the audit stream; `nil` if there is none.
    public var audit: @Sendable () -> LineCounts? = { nil }
    /// Counts of the log.
    public var log: @Sendable () -> LineCounts = { LineCounts() }
    /// Returns the fault of the store that all clients share, with its remedy; `nil` without a fault.
    public var storeFault: @Sendable () -> TokenStoreError? = { nil }
    public var reloads = ReloadCounts()
    /// Counts of spans; `nil` without tracing.
    public var spans: @Sendable () -> SpanReport? = { nil }

    public init(
        version: String, clients: [Client], pulse: @escaping @Sendable () async -> Void,
        traffic: @escaping @Sendable () async -> TrafficReport,
        route: @escaping @Sendable (_ method: String, _ url: String, _ fields: [String]) async -> RouteExplanation
    ) {
        self.version = version
        self.clients = clients
        places = Self.places(clients)
        self.pulse = pulse
        self.traffic = traffic
        self.route = route
    }

    func client(named name: String) -> Client? { places[name].map { clients[$0] } }

    private static func places(_ clients: [Client]) -> [String: Int] {
        Dictionary(clients.enumerated().map { ($1.heimdallr.name, $0) }) { first, _ in first }
    }
}
