/// Route of a request, as the proxy would choose it.
public enum RouteExplanation: Sendable, Equatable {
    case upstream(UpstreamRoute)
    /// `unmatched: forward`
    /// - Parameter destination: scheme and authority.
    case unmatched(destination: String)
    /// An https:// URL, for which programs send CONNECT: passed on unread, without a token.
    case tunnel(destination: String)
    /// The proxy would answer by itself.
    /// - Parameter word: last part of the answer's `type`.
    case refused(status: Int, word: String, detail: String)
    /// The route depends on the caller: routes for some callers, the most specific first, then the route for all
    /// others.
    indirect case callers([RouteExplanation], others: RouteExplanation)
}

/// A rule of the configuration, and its effect on a request.
public struct UpstreamRoute: Sendable, Equatable {
    /// Index of the configuration's upstream.
    public let index: Int
    /// The upstream's host and the rule's conditions, as configured.
    public let rule: String
    /// Scheme and authority, and the path prefix.
    public let destination: String
    /// Client whose token the request would carry; `nil` for none.
    public let client: String?
    /// Kinds and names of the injected values, never the values; empty when forwarded unsigned.
    public let injection: String
    /// Reason for forwarding unsigned where the rule injects.
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
