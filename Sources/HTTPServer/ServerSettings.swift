import Reactor

/// How long clients may take, and how much they may send.
public struct ServerSettings: Sendable {
    /// The whole head of a request must arrive in this time from its first byte, else 408.
    public var headerTimeout = Timeout(.seconds(10))
    /// Between requests, and for a client that does not take its answer.
    public var idleTimeout = Timeout(.seconds(60))
    /// Larger heads get 431, or 414 where the target alone is too long.
    public var maxHeaderBytes = 64 << 10
    public var maxFields = 256
    /// At most so many connections at once on one loop; at least 1.
    public var places = 1024
    /// A connection that had no request for so long may be ended for another one.
    public var shortIdle = Duration.seconds(1)

    public init() {}
}

/// A time to wait, in the form that setting a deadline is cheapest with: a request sets several.
public struct Timeout: Sendable, Equatable {
    /// `nil`: without end.
    public let nanoseconds: UInt64?

    public init(_ duration: Duration?) {
        nanoseconds = duration.map { UInt64(max(0, $0.wholeNanoseconds)) }
    }

    public static let off = Timeout(nil)
}
