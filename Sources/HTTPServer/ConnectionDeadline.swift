import Reactor

/// The event that a client's connection waits for, and its deadline.
struct ConnectionDeadline {
    enum Kind {
        case none
        /// The next request.
        case idle
        /// A last request while the server stops.
        case draining
        /// The rest of a head.
        case head
        /// An event of the handler.
        case handler
        /// The same, while the client owes nothing.
        case handlerIdle
        /// Room: the client has to take some of its answer.
        case room
        /// The first deadline of an HTTP/2 connection or one of its streams.
        case multiplexed
        /// The end: the client has to close after its last answer.
        case linger
    }

    let kind: Kind
    let time: LoopTime
    /// When it was set.
    let since: LoopTime

    static let never = LoopTime(nanoseconds: .max)

    static let off = ConnectionDeadline(.none, at: never, since: never)

    init(_ kind: Kind, at time: LoopTime, since: LoopTime) {
        self.kind = kind
        self.time = time
        self.since = since
    }

    /// - Parameter timeout: `.off`: there is no deadline.
    init(_ kind: Kind, after timeout: Timeout, since: LoopTime) {
        guard let nanoseconds = timeout.nanoseconds else {
            self = .off
            return
        }
        self.init(kind, at: since.advanced(by: nanoseconds), since: since)
    }
}
