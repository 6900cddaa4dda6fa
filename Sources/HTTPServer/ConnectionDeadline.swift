import Reactor

/// The event that a program's connection waits for, and the deadline of the wait.
struct ConnectionDeadline {
    enum Kind {
        case none
        /// Waits for the next request.
        case idle
        /// Waits for a last request, or over HTTP/2 for the last PING's answer, while the server stops.
        case draining
        /// Waits for the rest of a head, or for HTTP/2's first SETTINGS.
        case head
        /// Deadline of the handler.
        case handler
        /// Deadline of the handler while the program need not send anything.
        case handlerIdle
        /// Waits until the program has read some of its answer.
        case room
        /// Earliest deadline of an HTTP/2 connection and its streams.
        case multiplexed
        /// Waits until the program closes after its last answer.
        case linger
        /// Waits until the program has acknowledged all bytes, so that a reset destroys none.
        case acknowledgement
    }

    let kind: Kind
    let time: LoopTime
    /// Time at which the deadline was set.
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
