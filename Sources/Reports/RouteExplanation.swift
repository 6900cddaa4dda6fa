/// Where the proxy would send a request.
public enum RouteExplanation: Sendable, Equatable {
    case upstream(UpstreamRoute)
    /// `unmatched: forward`
    /// - Parameter destination: scheme and authority.
    case unmatched(destination: String)
    /// An https:// URL, for which programs send CONNECT: passed on unread, without a token.
    case tunnel(destination: String)
    /// The proxy would answer by itself.
    case refused(status: Int, detail: String)
    /// It depends on who asks: what some get, the most specific first, then what everybody else gets.
    indirect case callers([RouteExplanation], others: RouteExplanation)
}

/// A rule of the configuration, and what it would do with a request.
public struct UpstreamRoute: Sendable, Equatable {
    /// Of the configuration's upstreams.
    public let index: Int
    /// The upstream's host and what narrows it, as the configuration has them.
    public let rule: String
    /// Scheme and authority, and the path that is put in front.
    public let destination: String
    /// Whose token it would carry; `nil`: nobody's.
    public let client: String?
    /// What is put on it, and where: kinds and names, never values; empty when it is forwarded unsigned.
    public let injection: String
    /// Why it is, where its rule says otherwise.
    public let unsigned: String?

    public init(
        index: Int, rule: String, destination: String, client: String?, injection: String, unsigned: String? = nil
    ) {
        self.index = index
        self.rule = rule
        self.destination = destination
        self.client = client
        self.injection = injection
        self.unsigned = unsigned
    }
}
