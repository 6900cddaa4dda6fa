/// One finished request, for people. It holds no query, no body, and of the fields only the program's name.
public struct RecentRequest: Sendable, Equatable {
    /// The identifier that logs and answers show.
    public var id: String
    /// End of the request, in milliseconds since 1970.
    public var endedAt: Int64
    public var duration: Duration
    public var method: String
    /// Host and port of the upstream; of a request that went to no upstream, those that it named.
    public var host: String
    /// Path without its query. A long path is cut.
    public var path: String
    /// Status of the answer; 499 if the program left before, 0 if the answer was cut.
    public var status: Int
    /// User of the proxy, subject of a client certificate, or user ID; `nil` if nothing is known of the caller.
    public var caller: String?
    /// The program by its `User-Agent`. A long one is cut.
    public var program: String?
    public var upstream: String?
    /// Index in the configuration's `upstreams`.
    public var rule: Int?
    public var client: String?
    /// Reason for the proxy's own answer: the last word of the problem's `type`.
    public var reason: String?
    /// Sentence on the reason.
    public var cause: String?
    /// What would change the answer.
    public var remedy: String?

    public init(
        id: String, endedAt: Int64, duration: Duration, method: String, host: String, path: String, status: Int
    ) {
        self.id = id
        self.endedAt = endedAt
        self.duration = duration
        self.method = method
        self.host = host
        self.path = path
        self.status = status
    }
}

/// The last requests of all loops, the oldest first.
public struct RecentRequests: Sendable {
    public var requests: [RecentRequest] = []
    /// A random number of the process, then the number of requests of each loop since the start. Later requests are those after these.
    public var counts: [UInt64] = []
    /// Number of requests that ended after the asked-for counts but are no longer kept.
    public var missed: UInt64 = 0

    public static let most = 200

    public init() {}
}
