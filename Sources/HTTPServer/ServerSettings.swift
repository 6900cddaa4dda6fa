import Reactor

/// How long clients may take, and how much they may send.
public struct ServerSettings: Sendable {
    /// The whole head of a request must arrive in this time from its first byte, else 408.
    public var headerTimeout = Timeout(.seconds(10))
    /// Between requests, and for a client that does not take its answer.
    public var idleTimeout = Timeout(.seconds(60))
    /// For a client that does not take its answer, where that is another time.
    public var stallTimeout: Timeout?
    /// Larger heads get 431, or 414 where the target alone is too long.
    public var maxHeaderBytes = 64 << 10
    public var maxFields = 256
    /// At most so many connections at once on one loop; at least 1.
    public var maxConnections = 1024
    /// A connection that had no request for so long may be ended for another one.
    public var shortIdle = Duration.seconds(1)
    public var whenFull = WhenFull.wait
    /// How long a connection must have had no request before a server that stops closes it: until then its next request may
    /// be on its way, and is answered.
    public var farewell = Duration.zero

    // What follows is for servers of `async` handlers only.

    /// The whole request must arrive in this time from its first byte, else 408; `nil`: each piece of its body in
    /// `idleTimeout`.
    public var requestTimeout: Timeout?
    /// A longer field line gets 431, a longer target 414.
    public var maxFieldBytes = Int.max
    /// From an answer to the next request, if that one did not wait for it: else a few hundred connections with many
    /// requests each keep the machine from everybody who asks one thing at a time.
    public var pipelinePause: Timeout?

    public init() {}

    /// What a new connection gets when all places are taken.
    public enum WhenFull: Sendable {
        /// It waits until one is free. Those that were idle for `shortIdle` make room, more and more of them.
        case wait
        /// At once the place of one whose request is not whole, or else of one whose client does not take its answer: the
        /// one whose own time is up first. While there is none, it waits.
        case replace
    }
}

/// A time to wait, in the form that setting a deadline is cheapest with: a request sets several.
public struct Timeout: Sendable, Equatable {
    /// `nil`: without end.
    public let nanoseconds: UInt64?

    public init(_ duration: Duration?) {
        nanoseconds = duration.map { UInt64(max(0, $0.wholeNanoseconds)) }
    }

    public static let off = Timeout(nil)

    /// What is left of it.
    func less(_ elapsed: Duration) -> Timeout {
        guard let nanoseconds else { return self }
        return Timeout(.nanoseconds(Int64(clamping: nanoseconds)) - elapsed)
    }
}
