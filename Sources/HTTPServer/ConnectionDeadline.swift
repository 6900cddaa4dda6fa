import Reactor

/// What a client's connection waits for, and until when.
struct ConnectionDeadline {
    enum Kind {
        case none
        /// Another request.
        case idle
        /// A last request, while the server stops.
        case farewell
        /// The rest of a head.
        case head
        /// What the handler waits for.
        case handler
        /// The client, to take some of its answer.
        case room
        /// The client, to close behind its last answer.
        case linger
    }

    private(set) var kind = Kind.none
    private(set) var time = Self.never

    static let never = LoopTime(nanoseconds: .max)

    static let off = ConnectionDeadline()

    private init() {}

    init(_ kind: Kind, at time: LoopTime) {
        self.kind = kind
        self.time = time
    }
}
