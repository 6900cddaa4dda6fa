import CLinux

/// Flags of an epoll event; see epoll_ctl(2).
public struct Readiness: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
    /// The peer has shut down its sending side.
    public static let peerClosed = Readiness(rawValue: EPOLLRDHUP.rawValue)
    /// The connection failed, most often by a reset.
    public static let error = Readiness(rawValue: EPOLLERR.rawValue)
    public static let failed = Readiness(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
}

/// Receives readiness events of a descriptor on the loop's thread. Edge-triggered: each change is reported once, so the
/// handler has to remember it.
public protocol ReadinessHandler: AnyObject {
    func ready(_ readiness: Readiness)
}

/// Called once at the end of a turn, for work that is cheaper when batched, such as a flush.
public protocol TurnEndHandler: AnyObject {
    func turnEnded()
}

/// Called in the next turn, for work that lets other handlers run first.
public protocol NextTurnHandler: AnyObject {
    func nextTurn()
}
