/// Traffic of the proxy since its start: counted by `Proxy`, shown by `Administration`.
public struct TrafficReport: Sendable {
    /// Traffic by upstream. Upstreams with the same host and client are merged.
    public var upstreams: [UpstreamTraffic]
    public var inFlight: Int
    /// The proxy's own answers by their reason, the last word of a problem's `type`. Each reason that exists is there.
    public var refusals: [String: UInt64] = [:]
    /// Connections of programs. Connections above the limit wait to be accepted.
    public var programs: (open: Int, limit: Int) = (0, 0)
    /// Delays of the proxy's event loops in seconds, by the name of the thread.
    public var loops: [(name: String, lag: Histogram)] = []

    public init(upstreams: [UpstreamTraffic], inFlight: Int = 0) {
        self.upstreams = upstreams
        self.inFlight = inFlight
    }
}

/// A group of requests without an upstream. The raw value is its name in logs and metrics, which is no valid host.
public enum TrafficGroup: String, Sendable {
    /// Requests that are forwarded although no upstream names their host.
    case unmatched = "(unmatched)"
    case noUpstream = "(none)"
    /// Tunnels: CONNECT requests that the configuration allows.
    case tunnels = "(tunnels)"
}

/// Counts of all upstreams with the same name and client.
public struct UpstreamTraffic: Sendable {
    /// The upstream's host as configured, or the name of a `TrafficGroup`.
    public let name: String
    /// The client whose tokens the requests carry; `nil` if they are forwarded unsigned.
    public let client: String?
    public var requests = StatusCounts()
    public var durations: Histogram
    /// The part of `requests` that the proxy answered itself. `durationsByProxy` has the durations of this part.
    public var answeredByProxy = StatusCounts()
    public var durationsByProxy: Histogram
    /// Bytes of request bodies.
    public var bytesSent: UInt64 = 0
    /// Bytes of forwarded answers, heads included.
    public var bytesReceived: UInt64 = 0
    /// Outcomes of requests that needed a token; empty without a client.
    public var injections: [InjectionResult: UInt64] = [:]
    /// gRPC calls by status. Calls with a status above 16 or without a status count as `otherCall`.
    public var calls = StatusCounts()
    /// Answers that refused the proxy's credential, by 401 or 403.
    public var refused = StatusCounts()
    /// Judgements on the credential of each rule that has one, by its index in the configuration.
    public var judgements: [Int: CredentialRefusals] = [:]
    /// Connections to the upstream; `nil` if none are counted.
    public var connections: ConnectionUse?
    /// Printable cause of the last failed request to the upstream, and the time since then.
    public var lastFailure: (cause: String, ago: Duration)?

    public static let otherCall = 17

    /// - Parameter bounds: bounds of both histograms.
    public init(name: String, client: String?, bounds: [Double]) {
        self.name = name
        self.client = client
        durations = Histogram(bounds: bounds)
        durationsByProxy = durations
    }

    /// Requests that the proxy did not answer itself.
    public var answeredByUpstream: StatusCounts { requests.subtracting(answeredByProxy) }
    public var durationsByUpstream: Histogram { durations.subtracting(durationsByProxy) }

    /// The rules whose credential the API keeps refusing, by index.
    public var lastingRefusals: [(rule: Int, refusals: CredentialRefusals)] {
        judgements.filter { $0.value.isLasting }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Adds other counts for the same name and client.
    public mutating func add(_ other: UpstreamTraffic) {
        requests.add(other.requests)
        durations.add(other.durations)
        answeredByProxy.add(other.answeredByProxy)
        durationsByProxy.add(other.durationsByProxy)
        bytesSent &+= other.bytesSent
        bytesReceived &+= other.bytesReceived
        calls.add(other.calls)
        refused.add(other.refused)
        judgements.merge(other.judgements) { one, other in
            var sum = one
            sum.add(other)
            return sum
        }
        injections.merge(other.injections, uniquingKeysWith: &+)
        guard let others = other.connections else { return }
        var sum = connections ?? ConnectionUse()
        sum.add(others)
        connections = sum
    }
}

/// Outcome of the injection for a request whose upstream has a client.
public enum InjectionResult: Int, Sendable, CaseIterable {
    /// The request went out with a token.
    case injected
    /// The request was sent again with a new token, because the first token was rejected.
    case replayed
    /// The program's own credential was forwarded unchanged.
    case kept
    /// The proxy answered itself: no token was available in time, or the program's own credential was refused.
    case failed

    /// Name in metrics.
    public var name: String { "\(self)" }
}
