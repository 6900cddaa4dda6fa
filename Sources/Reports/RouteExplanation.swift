/// Route of a request, as the proxy would choose it.
public enum RouteExplanation: Sendable, Equatable {
    case upstream(UpstreamRoute)
    /// The proxy would forward the request without a token, because of `unmatched: forward`.
    /// - Parameter destination: scheme and authority.
    case unmatched(destination: String, https: HTTPSTreatment)
    /// An https:// URL, for which programs send CONNECT. The proxy would pass the bytes on unread, without a token.
    case tunnel(destination: String)
    /// The proxy would refuse the request with its own answer.
    /// - Parameter word: last part of the answer's `type`.
    case refused(status: Int, word: String, detail: String)
    /// The route depends on the caller: routes for some callers, the most specific first, then the route for all
    /// others.
    indirect case callers([RouteExplanation], others: RouteExplanation)
}

/// An upstream's rule in the configuration, and its effect on a request.
public struct UpstreamRoute: Sendable, Equatable {
    /// Index of the upstream in the configuration.
    public let index: Int
    /// The upstream's host and the rule's conditions, as configured.
    public let rule: String
    /// Scheme and authority, and the path prefix.
    public let destination: String
    /// Client whose token the request would carry; `nil` for none.
    public let client: String?
    /// Kinds and names of the injected values, never the values; empty when forwarded unsigned.
    public let injection: String
    /// Reason for forwarding this request unsigned, although the rule injects a value.
    public let unsigned: String?
    public let https: HTTPSTreatment

    public init(
        index: Int, rule: String, destination: String, client: String?, injection: String, unsigned: String? = nil,
        https: HTTPSTreatment
    ) {
        self.index = index
        self.rule = rule
        self.destination = destination
        self.client = client
        self.injection = injection
        self.unsigned = unsigned
        self.https = https
    }
}

/// Treatment of an https:// URL of a route's host, for which programs send CONNECT.
public enum HTTPSTreatment: String, Sendable {
    /// The proxy opens the TLS, and treats the requests as those of http:// URLs.
    case intercepted
    /// The bytes pass unread, without a token.
    case tunnelled
    case refused
}
