import Reactor
import WireText

/// A limit of the configuration that ended an exchange. For the log. Each has one row in Limits.tsv, of its name.
public enum ReachedLimit: String, CaseIterable, Sendable {
    // The limit of a problem.
    case headerTimeout, tokenWait, bodyTooLarge, bodyNotSignable, upgradeBodyTooLarge
    // Deadlines of the program: `unreadAnswer` if it takes nothing of its answer.
    case drain, unreadAnswer, body, program, tunnel
    // Deadlines of the upstream.
    case response, answer, upgrade, stream, call

    private static let rows: [String: [String]] = TextTable.rows(PackageResources.Limits_tsv, columns: 4)
        .reduce(into: [:]) { $0[$1[0]] = $1 }

    private func cell(_ index: Int) -> String { Self.rows[rawValue]?[index] ?? "" }

    /// The key. Without `proxy.` it is a key of the upstream.
    public var key: String { cell(1) }
    public var reason: String { cell(2) }
    public var remedy: String { cell(3) }

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
