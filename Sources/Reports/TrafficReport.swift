/// What the proxy has done since it started: counted by `Proxy`, shown by `Administration`.
public struct TrafficReport: Sendable {
    /// Upstreams that share host and client are one.
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

/// What was counted for the upstreams of one name and one client.
public struct UpstreamTraffic: Sendable {
    /// The upstream's host as the configuration has it. No host looks like the others: `(unmatched)`, `(none)` for
    /// requests that no upstream was for, and `(tunnels)` for CONNECT where it is allowed.
    public let name: String
    /// `nil`: forwarded unsigned.
    public let client: String?
    public var requests = StatusCounts()
    public var durations: Histogram
    /// Of `requests`, those that the proxy answered by itself without asking the upstream; and how long they took.
    public var answeredByProxy = StatusCounts()
    public var durationsByProxy: Histogram
    /// Bytes of request bodies.
    public var bytesSent: UInt64 = 0
    /// Bytes of answers that were passed on, heads included.
    public var bytesReceived: UInt64 = 0
    /// What became of requests that wanted a token; of those without a client there are none.
    public var injections: [InjectionResult: UInt64] = [:]
    /// `nil`: it has none of its own.
    public var connections: ConnectionUse?
    /// Why the last request that failed on the way did so, printable; and how long ago.
    public var lastFailure: (cause: String, ago: Duration)?

    /// - Parameter bounds: of both histograms.
    public init(name: String, client: String?, bounds: [Double]) {
        self.name = name
        self.client = client
        durations = Histogram(bounds: bounds)
        durationsByProxy = durations
    }

    /// What was sent to the upstream.
    public var ownRequests: StatusCounts { requests.less(answeredByProxy) }
    public var ownDurations: Histogram { durations.less(durationsByProxy) }

    /// Adds what was counted elsewhere for the same name.
    public mutating func add(_ other: UpstreamTraffic) {
        requests.add(other.requests)
        durations.add(other.durations)
        answeredByProxy.add(other.answeredByProxy)
        durationsByProxy.add(other.durationsByProxy)
        bytesSent &+= other.bytesSent
        bytesReceived &+= other.bytesReceived
        injections.merge(other.injections, uniquingKeysWith: &+)
        guard let others = other.connections else { return }
        var sum = connections ?? ConnectionUse()
        sum.add(others)
        connections = sum
    }
}

/// What became of the token of a request whose upstream has a client.
public enum InjectionResult: Int, Sendable, CaseIterable {
    /// The request went out with a token.
    case injected
    /// It went out a second time, with a new token, because the first was refused.
    case replayed
    /// The program's own credential was left as it was.
    case kept
    /// There was no token in time, or the program's own credential was refused: the proxy answered by itself.
    case failed

    /// As metrics name it.
    public var name: String { "\(self)" }
}
