/// Traffic of the proxy since its start: counted by `Proxy`, shown by `Administration`.
public struct TrafficReport: Sendable {
    /// Upstreams with the same host and client are merged.
    public var upstreams: [UpstreamTraffic]
    public var inFlight: Int
    public var clients = ClientConnections()
    /// The proxy's event loops.
    public var loops: [LoopReport] = []

    public init(upstreams: [UpstreamTraffic], inFlight: Int = 0) {
        self.upstreams = upstreams
        self.inFlight = inFlight
    }
}

/// Counts of the upstreams with one name and one client.
public struct UpstreamTraffic: Sendable {
    /// The upstream's host as configured. Names that no host can have: `(unmatched)`, `(none)` for requests without an
    /// upstream, and `(tunnels)` for CONNECT where it is allowed.
    public let name: String
    /// `nil` when forwarded unsigned.
    public let client: String?
    public var requests = StatusCounts()
    /// Calls of gRPC among them, by gRPC's status.
    public var grpcStatuses: [Int: UInt64] = [:]
    public var durations: Histogram
    /// Requests among `requests` that the proxy answered itself without the upstream, and their durations.
    public var answeredByProxy = StatusCounts()
    public var durationsByProxy: Histogram
    /// Bytes of request bodies.
    public var bytesSent: UInt64 = 0
    /// Bytes of forwarded answers, heads included.
    public var bytesReceived: UInt64 = 0
    /// Outcomes of requests that needed a token; empty without a client.
    public var injections: [InjectionResult: UInt64] = [:]
    /// `nil` without its own connections.
    public var connections: ConnectionUse?
    /// Printable cause of the last request that failed on the way, and its age.
    public var lastFailure: (cause: String, ago: Duration)?

    /// - Parameter bounds: of both histograms.
    public init(name: String, client: String?, bounds: [Double]) {
        self.name = name
        self.client = client
        durations = Histogram(bounds: bounds)
        durationsByProxy = durations
    }

    /// Requests sent to the upstream.
    public var ownRequests: StatusCounts { requests.less(answeredByProxy) }
    public var ownDurations: Histogram { durations.less(durationsByProxy) }

    /// Adds counts from elsewhere for the same name.
    public mutating func add(_ other: UpstreamTraffic) {
        requests.add(other.requests)
        durations.add(other.durations)
        answeredByProxy.add(other.answeredByProxy)
        durationsByProxy.add(other.durationsByProxy)
        bytesSent &+= other.bytesSent
        bytesReceived &+= other.bytesReceived
        grpcStatuses.merge(other.grpcStatuses, uniquingKeysWith: &+)
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
    /// The program's own credential was left unchanged.
    case kept
    /// The proxy answered itself: no token was available in time, or the program's own credential was refused.
    case failed

    /// Name in metrics.
    public var name: String { "\(self)" }
}
