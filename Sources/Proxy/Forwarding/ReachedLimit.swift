import Reactor

/// A limit of the configuration that ended an exchange. For the log.
public struct ReachedLimit: Sendable, Hashable {
    /// The key. Without `proxy.` it is a key of the upstream.
    public let key: String
    public let reason: String
    public let remedy: String

    private init(_ key: String, _ reason: String, _ remedy: String) {
        (self.key, self.reason, self.remedy) = (key, reason, remedy)
    }

    static let headerTimeout = ReachedLimit(
        "proxy.header_timeout", "the head of a request did not arrive in time",
        "raise proxy.header_timeout if programs are that slow")
    static let tokenWait = ReachedLimit(
        "token_wait", "no token came in time",
        "find out by `heimdallr-proxy status` why the authorization server is slow, or raise the upstream's token_wait")
    static let bodyTooLarge = ReachedLimit(
        "proxy.max_body_bytes", "the body of a request is too large", "raise proxy.max_body_bytes if that is meant")
    static let bodyNotSignable = ReachedLimit(
        "max_replay_bytes", "the body of a request that has to be signed is too large",
        "raise the upstream's max_replay_bytes")
    static let upgradeBodyTooLarge = ReachedLimit(
        "max_replay_bytes", "the body of a request that offers an upgrade is too large",
        "raise the upstream's max_replay_bytes")
    /// A program that takes nothing of its answer.
    static let unreadAnswer = ReachedLimit(
        "proxy.idle_timeout", "the program read nothing of its answer for too long",
        "find out why the program does not read, or raise proxy.idle_timeout")
    static let drain = ReachedLimit(
        "proxy.drain_timeout", "the proxy stopped, and the exchange had not ended in time",
        "raise proxy.drain_timeout if exchanges take that long")

    private static let response = ReachedLimit(
        "response_timeout", "the upstream sent no answer in time",
        "find out why the upstream is slow, or raise the upstream's response_timeout")
    private static let answer = ReachedLimit(
        "idle_timeout", "the upstream sent nothing more of its answer for too long",
        "find out why the upstream is slow, or raise the upstream's idle_timeout; `off` waits for ever")
    private static let upgrade = ReachedLimit(
        "idle_timeout", "no byte passed in either direction of an upgraded connection for too long",
        "raise the upstream's idle_timeout, or leave it out to wait for ever; or let one side send pings")
    private static let stream = ReachedLimit(
        "idle_timeout", "the upstream sent no event for too long",
        "raise the upstream's idle_timeout, or leave it out to wait for ever; or let the server send comments")
    private static let call = ReachedLimit(
        "idle_timeout", "no message of a gRPC call came for too long",
        "raise the upstream's idle_timeout, or leave it out to wait for ever")
    private static let body = ReachedLimit(
        "proxy.idle_timeout", "the program sent nothing more of its request's body for too long",
        "raise proxy.idle_timeout if programs make such pauses")
    private static let program = ReachedLimit(
        "proxy.idle_timeout", "the program sent nothing in an upgraded connection whose other side had ended",
        "raise proxy.idle_timeout if programs are silent for so long")
    private static let tunnel = ReachedLimit(
        "proxy.idle_timeout", "no byte passed in either direction of a tunnel for too long",
        "raise proxy.idle_timeout if programs need silent tunnels; else ignore this")

    /// The limit whose deadline has passed; `nil` if the exchange goes on, or if another line names the limit.
    init?(deadlineOf exchange: Exchange) {
        if case .refused = exchange.state { return nil }
        let isCall = exchange.request.isGRPC
        switch exchange.patience {
        case .none, .loginDelay, .upstreamEnd, .firstBytes: return nil
        case .response: self = .response
        case .requestBody: self = isCall ? .call : .body
        case .upstream:
            self = isCall ? .call : exchange.isSwitched ? .upgrade : exchange.isEventStream ? .stream : .answer
        case .program: self = .program
        case .tunnel: self = .tunnel
        }
    }

    /// The limit that a problem is about, unless it is a deadline's.
    init?(_ problem: Problem) {
        switch problem.condition {
        case .slowHead: self = .headerTimeout
        case .bodyTooLarge: self = .bodyTooLarge
        case .bodyNotSignable: self = .bodyNotSignable
        case .upgradeBodyTooLarge: self = .upgradeBodyTooLarge
        case .lateToken: self = .tokenWait
        default: return nil
        }
    }
}

/// One exchange that a limit ended.
public struct LimitReport: Sendable {
    public var limit: ReachedLimit
    /// Name of the upstream's rule, or of a group of requests without a rule.
    public var upstream: String
    /// URL without its query; `HOST:PORT` for a tunnel. Printable ASCII.
    public var url: [UInt8]
    /// Request ID in the access log.
    public var requestID: [UInt8]
    /// Number of further exchanges since the last report about this limit and upstream.
    public var others: Int
}

/// Limits the log's lines about events that any program can cause: of each kind one in ten seconds.
struct LineLimit {
    private static let interval = Duration.seconds(10)
    private var lastLogged: LoopTime?
    private var unlogged = 0

    /// - Returns: number of events not logged since the last logged event; `nil` if this one must not be logged.
    mutating func count(at now: LoopTime) -> Int? {
        if let lastLogged, now.since(lastLogged) < Self.interval {
            unlogged += 1
            return nil
        }
        defer { (lastLogged, unlogged) = (now, 0) }
        return unlogged
    }
}

/// The lines about reached limits on one loop. There are at most as many as the configuration's upstreams, times the
/// limits.
struct LimitLines {
    private struct Kind: Hashable {
        var limit: ReachedLimit
        var upstream: String
    }

    private var lines: [Kind: LineLimit] = [:]

    mutating func count(_ limit: ReachedLimit, _ upstream: String, at now: LoopTime) -> Int? {
        lines[Kind(limit: limit, upstream: upstream), default: LineLimit()].count(at: now)
    }
}
