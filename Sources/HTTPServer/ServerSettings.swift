import HTTPMessage
import Reactor

/// Limits of time and size for programs.
public struct ServerSettings: Sendable {
    /// Time limit for a request's head, from its first byte. A slower head gets 408.
    public var headerTimeout = Timeout(.seconds(10))
    /// Time limit between requests. Without `stallTimeout`, also for a program that reads nothing of its answer.
    public var idleTimeout = Timeout(.seconds(60))
    /// Time limit for a program that reads nothing of its answer; `nil`: `idleTimeout`.
    public var stallTimeout: Timeout?
    /// Size limit of a head. A larger head gets 431, or 414 if its target alone is too long.
    public var maxHeaderBytes = 64 << 10
    public var maxFields = 256
    /// Limit of concurrent connections on one loop; at least 1.
    public var maxConnections = 1024
    /// Idle time after which the server may close a connection to free its slot.
    public var shortIdle = Duration.seconds(1)
    public var whenFull = WhenFull.wait
    /// Idle time after which a stopping server closes a connection. Until then the server answers another request,
    /// which may have been on its way.
    public var drainIdleTimeout = Duration.zero

    /// Whether programs may use HTTP/2. Handlers must then implement `ProgramStreamHandler.handler(for:)`.
    public var servesHTTP2 = false

    // For servers of `async` handlers only:

    /// Time limit for a whole request (else 408). `nil`: `idleTimeout` limits the wait for each piece of its body.
    public var requestTimeout: Timeout?
    /// Size limit of a field's name and value together (else 431), and of a target (else 414).
    public var maxFieldBytes = Int.max
    /// Beginning of the names of the server's own cookies; `nil`: all cookies count. Others are removed from a head that
    /// is too large, and the Cookie field may be larger than `maxFieldBytes`.
    public var ownCookies: StaticString?
    /// Pause before a pipelined request, which the program sent before the previous answer. Without a pause, a few
    /// hundred pipelining programs would delay programs that send one request at a time.
    public var pipelinePause: Timeout?

    public init() {}

    /// Most bytes that the requests of one connection hold together: heads, bodies and answers.
    public static let allowance = HTTP2Allowance.bodies + HTTP2Allowance.others

    var headLimits: HeadLimits { HeadLimits(maxBytes: maxHeaderBytes, maxFields: maxFields) }
    /// Time limit for a program that reads nothing of its answer.
    var outputTimeout: Timeout { stallTimeout ?? idleTimeout }

    /// Treatment of a new connection when all slots are taken.
    public enum WhenFull: Sendable {
        /// The new connection waits for a free slot. Each check closes connections that were idle for `shortIdle`: one
        /// at first, then twice as many as before.
        case wait
        /// The new connection replaces a connection without a whole request, or else one with a stalled program. Of
        /// several, the one with the earliest deadline is replaced. If none can be, the new connection waits.
        case replace
    }
}

/// A timeout as a number of nanoseconds, the form that is cheapest for the several deadlines of each request.
public struct Timeout: Sendable, Equatable {
    /// `nil`: no limit.
    public let nanoseconds: UInt64?

    public init(_ duration: Duration?) { nanoseconds = duration.map { UInt64(max(0, $0.wholeNanoseconds)) } }

    public static let off = Timeout(nil)

    /// Returns the timeout minus `elapsed`.
    func less(_ elapsed: Duration) -> Timeout {
        guard let nanoseconds else { return self }
        return Timeout(.nanoseconds(Int64(clamping: nanoseconds)) - elapsed)
    }
}
