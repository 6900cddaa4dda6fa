public import Heimdallr

/// Where the administration listens, and whom it answers.
public struct AdministrationSettings: Sendable {
    /// A numeric address or a name.
    public var host: String
    /// 0 lets the kernel choose.
    public var port: UInt16
    /// What the command line talks to, an absolute path; `nil`: `AdminSocket.defaultPath`.
    public var socket: String?
    /// Further names, without ports, that the page, `/status` and `/events` answer to.
    public var hosts: [String] = []
    /// What the page asks for once, and `/status` and `/events` want as a bearer token too; read anew for each request.
    /// `nil`: nothing.
    public var token: (any SecretProvider)?
    /// `$XDG_RUNTIME_DIR`.
    public var runtimeDirectory: String?

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

/// What is administered: the clients by their own objects, the rest by questions that somebody else answers.
public struct AdministrationSources: Sendable {
    /// One OAuth client.
    public struct Client: Sendable {
        public var heimdallr: Heimdallr
        /// Gets its tokens without a person.
        public var isUnattended: Bool
        /// Where the authorization server sends the browser back to; `nil`: `/callback` of the admin port.
        public var redirectURI: String?
        /// Who gives it tokens: the issuer, or else the token endpoint, without a query.
        public var issuer: String?
        /// Where its last request to the server went, and why it failed where it did.
        public var lastRequest: @Sendable () -> LastRequest = { LastRequest() }

        public init(
            _ heimdallr: Heimdallr, isUnattended: Bool, redirectURI: String? = nil, issuer: String? = nil
        ) {
            self.heimdallr = heimdallr
            self.isUnattended = isUnattended
            self.redirectURI = redirectURI
            self.issuer = issuer
        }
    }

    /// A request to an authorization server.
    public struct LastRequest: Sendable, Equatable {
        /// Without its query.
        public var url: String?
        /// Printable; `nil`: there was an answer.
        public var cause: String?

        public init(url: String? = nil, cause: String? = nil) {
            self.url = url
            self.cause = cause
        }
    }

    /// One rule of the configuration, for people who want to use it.
    public struct Rule: Sendable, Equatable {
        /// The upstream's name and its client, as in `TrafficReport`.
        public var upstream: String
        public var client: String?
        /// Where its requests go; `nil`: to the host that was asked for.
        public var destination: String?
        /// A command that makes such a request.
        public var example: String

        public init(upstream: String, client: String?, destination: String?, example: String) {
            self.upstream = upstream
            self.client = client
            self.destination = destination
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
    public var route: @Sendable (_ method: String, _ url: String) async -> RouteReport
    /// What a program gets that wants this client's token while there is none, and why there is none.
    /// - Parameters:
    ///   - advice: how somebody signs in, to stand behind a colon.
    ///   - url: where a browser begins.
    public var refusal:
        @Sendable (_ client: String, _ error: HeimdallrError, _ advice: String, _ url: String?) -> RefusalReport = {
            RefusalReport(status: 503, title: "\($1)", loginURL: $3)
        }
    /// Whom the proxy serves; empty: everybody.
    public var users: [String] = []

    public init(
        version: String, clients: [Client], pulse: @escaping @Sendable () async -> Void,
        traffic: @escaping @Sendable () async -> TrafficReport,
        route: @escaping @Sendable (_ method: String, _ url: String) async -> RouteReport
    ) {
        self.version = version
        self.clients = clients
        self.pulse = pulse
        self.traffic = traffic
        self.route = route
    }

    func client(named name: String) -> Client? { clients.first { $0.heimdallr.name == name } }
}

/// What the proxy has done since it started.
public struct TrafficReport: Sendable {
    /// One name of the configuration: upstreams of the same host are counted together.
    public struct Upstream: Sendable {
        public var name: String
        /// `nil`: forwarded unsigned.
        public var client: String?
        /// By status code, 100 to 599.
        public var requests: [(code: Int, count: UInt64)] = []
        public var durations: Histogram
        /// Bytes of request bodies.
        public var bytesSent: UInt64 = 0
        /// Bytes of answers, heads included.
        public var bytesReceived: UInt64 = 0
        /// Of `requests`, those that the proxy answered by itself without asking the upstream; and how long they took.
        public var answeredByProxy: [(code: Int, count: UInt64)] = []
        public var durationsByProxy: Histogram
        /// Why the last request that failed on the way did so, printable; and how long ago.
        public var lastFailure: (cause: String, ago: Duration)?
        /// What became of requests that wanted a token, by the result's name.
        public var injections: [(result: String, count: UInt64)] = []

        public init(name: String, client: String?, durations: Histogram) {
            self.name = name
            self.client = client
            self.durations = durations
            durationsByProxy = Histogram(bounds: durations.bounds)
        }

        /// What the upstream itself had to do with.
        var ownRequests: [(code: Int, count: UInt64)] {
            requests.compactMap { code, count in
                let ours = answeredByProxy.first { $0.code == code }?.count ?? 0
                return count > ours ? (code, count - ours) : nil
            }
        }

        var ownDurations: Histogram { durations.less(durationsByProxy) }
    }

    public var upstreams: [Upstream]
    public var inFlight: Int

    public init(upstreams: [Upstream], inFlight: Int) {
        self.upstreams = upstreams
        self.inFlight = inFlight
    }
}

/// Counts of durations by size.
public struct Histogram: Sendable, Equatable {
    /// Upper bounds in seconds, rising; the last bucket has none.
    public private(set) var bounds: [Double]
    /// One more than bounds; each value in one bucket only.
    public var counts: [UInt64]
    /// In seconds.
    public var sum: Double

    public init(bounds: [Double]) {
        self.init(bounds: bounds, counts: Array(repeating: 0, count: bounds.count + 1), sum: 0)
    }

    public init(bounds: [Double], counts: [UInt64], sum: Double) {
        self.bounds = bounds
        self.counts = counts
        self.sum = sum
    }

    public mutating func record(_ duration: Duration) {
        let seconds = max(0, duration.inSeconds)
        counts[bounds.firstIndex { seconds <= $0 } ?? bounds.count] += 1
        sum += seconds
    }

    /// - Precondition: the bounds are the same.
    mutating func add(_ other: Histogram) {
        for (index, count) in other.counts.enumerated() where index < counts.count { counts[index] += count }
        sum += other.sum
    }

    /// - Precondition: the bounds are the same, and the other's values are among these.
    func less(_ other: Histogram) -> Histogram {
        var rest = self
        for (index, count) in other.counts.enumerated() where index < counts.count {
            rest.counts[index] -= min(count, rest.counts[index])
        }
        rest.sum = max(0, sum - other.sum)
        return rest
    }

    public var total: UInt64 { counts.reduce(0, &+) }
}

/// What the proxy answers by itself.
public struct RefusalReport: Sendable, Equatable {
    public var status: Int
    public var title: String
    public var loginURL: String?

    public init(status: Int, title: String, loginURL: String?) {
        self.status = status
        self.title = title
        self.loginURL = loginURL
    }
}

/// Where a request would go.
public enum RouteReport: Sendable, Equatable {
    /// - Parameters:
    ///   - rule: the upstream's host and what narrows it, as the configuration has them.
    ///   - destination: scheme and authority, and the path that is put in front.
    ///   - client: whose token it would carry; `nil` when it is forwarded unsigned.
    ///   - injection: how the token goes onto it; without a client why none does, or empty.
    case upstream(rule: String, destination: String, client: String?, injection: String)
    /// The proxy would answer by itself.
    case refused(status: Int, reason: String)
    /// It depends on who asks: what some get, the most specific first, then everybody else.
    indirect case callers([RouteReport], others: RouteReport)
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
