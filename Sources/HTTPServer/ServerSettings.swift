import HTTPMessage
import Reactor

/// Limits of time and size for clients.
public struct ServerSettings: Sendable {
    /// Time for the whole head of a request from its first byte, else 408.
    public var headerTimeout = Timeout(.seconds(10))
    /// Time between requests, and for a client that does not take its answer.
    public var idleTimeout = Timeout(.seconds(60))
    /// Time for a client that does not take its answer, where it differs from `idleTimeout`.
    public var stallTimeout: Timeout?
    /// Larger heads get 431, or 414 where the target alone is too long.
    public var maxHeaderBytes = 64 << 10
    public var maxFields = 256
    /// Limit of concurrent connections on one loop; at least 1.
    public var maxConnections = 1024
    /// Idle time after which a connection may be ended in favour of a new one.
    public var shortIdle = Duration.seconds(1)
    public var whenFull = WhenFull.wait
    /// Idle time after which a stopping server closes a connection. Until then its next request may be on its way, and
    /// is answered.
    public var drainIdleTimeout = Duration.zero

    /// Whether clients may speak HTTP/2. Their handlers then make others: `ClientStreamHandler.handler(for:)`.
    public var servesHTTP2 = false

    // For servers of `async` handlers only:

    /// Time for the whole request from its first byte, else 408. `nil`: `idleTimeout` for each piece of its body.
    public var requestTimeout: Timeout?
    /// A longer field line gets 431, a longer target 414.
    public var maxFieldBytes = Int.max
    /// Pause between an answer and the next request, if that request was sent before the answer. Without it, a few
    /// hundred connections with many requests each would delay clients that send one at a time.
    public var pipelinePause: Timeout?

    public init() {}

    var headLimits: HeadLimits { HeadLimits(maxBytes: maxHeaderBytes, maxFields: maxFields) }
    /// Time for a client that takes nothing of its answer.
    var outputTimeout: Timeout { stallTimeout ?? idleTimeout }

    /// Treatment of a new connection when all slots are taken.
    public enum WhenFull: Sendable {
        /// The new connection waits for a free slot. Connections that were idle for `shortIdle` are ended, more with
        /// each check.
        case wait
        /// The new connection replaces one with an incomplete request, else one whose client takes nothing of its answer;
        /// among several, the one whose deadline is next. While there is none, it waits.
        case replace
    }
}

/// A timeout in the form that makes setting a deadline cheapest, because each request sets several.
public struct Timeout: Sendable, Equatable {
    /// `nil`: no end.
    public let nanoseconds: UInt64?

    public init(_ duration: Duration?) { nanoseconds = duration.map { UInt64(max(0, $0.wholeNanoseconds)) } }

    public static let off = Timeout(nil)

    /// The remaining time after `elapsed`.
    func less(_ elapsed: Duration) -> Timeout {
        guard let nanoseconds else { return self }
        return Timeout(.nanoseconds(Int64(clamping: nanoseconds)) - elapsed)
    }
}
