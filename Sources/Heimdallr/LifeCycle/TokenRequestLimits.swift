/// Bounds on the requests that a process has under way at authorization servers.
public struct TokenRequestLimits: Sendable, Hashable {
    /// Requests of all clients that have been under way for less than `slowAfter`.
    public var fresh = 32
    /// Age from which a request no longer counts towards `fresh`, so that hanging servers leave room for others.
    public var slowAfter = Duration.seconds(1)
    /// Requests of all clients, slow ones included.
    public var all = 128
    /// Requests to one authority (scheme, host and port), whatever the clients.
    public var endpoint = 16
    /// Requests of one client, those of its callers included.
    public var client = 12
    /// How many of `endpoint` are for clients without a request under way. Clients whose requests hang leave them to others.
    public var endpointSpare = 4
    /// How many of `all` are for endpoints without a request under way.
    public var allSpare = 32

    /// The limits of `TokenRequestLimiter.shared`.
    public init() {}

    /// One request at a time.
    static let one: TokenRequestLimits = {
        var limits = TokenRequestLimits()
        limits.all = 1
        limits.allSpare = 0
        return limits
    }()
}
