import Reactor

/// The part of an HTTP server that lives on one loop: its listeners, and its clients' connections. Loop's thread only.
public final class ServerLoop {
    /// Shortest time between two looks at the clients' deadlines.
    private static let sweepInterval = Duration.milliseconds(50)

    public let loop: EventLoop
    public private(set) var settings: ServerSettings
    /// Memory for what clients send and are sent.
    let spares = SpareBuffers()
    var date = DateField()
    private enum Life {
        case serving
        /// Whoever comes is served, and sent away with the answer.
        case leaving
        case draining
    }

    private var life = Life.serving
    public var isDraining: Bool { life == .draining }
    private let makeHandler: (ServerConnection) -> any ConnectionHandler
    private let admits: ((PeerCredentials?) -> Bool)?
    private let acceptFailed: (SystemError) -> Void
    private var acceptors: [Acceptor] { Array(listeners.values) }
    private var listeners: [Int: Acceptor] = [:]
    /// Some that there were are no more.
    private var hasClosed = false
    private var connections: [ObjectIdentifier: ServerConnection] = [:]
    /// Clients that are connected.
    public var count: Int { connections.count }
    private var room = Room()
    /// Nobody is accepted.
    private var isFull = false
    /// Those that may have to go, the weakest last, as they were at this moment of the loop.
    private var replaceable: [ServerConnection] = []
    private var replaceableAt = LoopTime(nanoseconds: 0)
    private var roomTimer: LoopTimer?
    private var sweep: LoopTimer?
    private var nextSweep = LoopTime(nanoseconds: .max)
    private var whenEmpty: (() -> Void)?

    /// - Parameters:
    ///   - admits: looks at who called, on a Unix socket; whom it does not admit is closed before anything is read.
    ///   - acceptFailed: told, not each time, that nobody can be accepted: for want of a descriptor most likely. It is
    ///     tried again.
    ///   - makeHandler: called for each connection.
    public init(
        _ settings: ServerSettings, on loop: EventLoop, admits: ((PeerCredentials?) -> Bool)? = nil,
        acceptFailed: @escaping (SystemError) -> Void,
        makeHandler: @escaping (ServerConnection) -> any ConnectionHandler
    ) {
        self.settings = settings
        self.loop = loop
        self.admits = admits
        self.acceptFailed = acceptFailed
        self.makeHandler = makeHandler
        sweep = LoopTimer(on: loop) { [unowned self] in sweepDeadlines() }
        roomTimer = LoopTimer(on: loop) { [unowned self] in makeRoom() }
    }

    /// Starts to accept. `listener` is what its connections are told they came in at.
    public func listen(_ socket: ListeningSocket, listener: Int) throws(SystemError) {
        let acceptor = try Acceptor(
            socket, on: loop, accepted: { [unowned self] in accepted($0, listener) },
            failed: { [unowned self] in failed($0) })
        listeners[listener] = acceptor
        if isFull { acceptor.pause() }
    }

    /// Nobody is accepted there any more. Its idle connections close once they were idle for `farewell`, busy ones after
    /// their answer.
    public func stopListening(_ listener: Int) {
        listeners.removeValue(forKey: listener)?.finish()
        hasClosed = true
        for connection in connections.values where connection.listener == listener { connection.drain() }
    }

    /// Whether a connection that came in at `listener` ends behind its answer.
    func isEnding(_ listener: Int) -> Bool { life != .serving || hasClosed && listeners[listener] == nil }

    /// From now on; what is under way keeps its deadlines.
    public func update(_ settings: ServerSettings) {
        self.settings = settings
        if connections.count < settings.maxConnections { resume() }
    }

    // MARK: Clients

    private func accepted(_ socket: StreamSocket, _ listener: Int) {
        let connection = ServerConnection(socket, listener: listener, server: self)
        guard admits?(connection.peer) ?? true else { return connection.close() }
        if settings.whenFull == .replace, connections.count >= settings.maxConnections { weakest?.stop() }
        do throws(SystemError) {
            try connection.begin(makeHandler(connection))
        } catch {
            failed(error)
            return
        }
        connections[ObjectIdentifier(connection)] = connection
        guard connections.count >= settings.maxConnections else { return }
        if settings.whenFull == .replace {
            // Its request may be there already.
            connection.ready(.readable)
            if weakest != nil { return }
        }
        isFull = true
        for acceptor in acceptors { acceptor.pause() }
        lookForRoomAgain()
    }

    private func lookForRoomAgain() {
        roomTimer?.schedule(after: settings.whenFull == .wait ? Room.interval : PlaceClaim.grace / 5)
    }

    /// Who has to go first when one more wants a place; `nil` while nobody has to.
    private var weakest: ServerConnection? {
        if replaceableAt != loop.now || replaceable.isEmpty {
            replaceableAt = loop.now
            replaceable = connections.values.compactMap { connection in
                connection.claim.map { (connection: connection, claim: $0) }
            }.sorted { $1.claim < $0.claim }.map(\.connection)
        }
        while let last = replaceable.last, last.claim == nil { replaceable.removeLast() }
        return replaceable.last
    }

    func connectionEnded(_ connection: ServerConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        if isDraining {
            if connections.isEmpty { finishDraining() }
        } else if connections.count < settings.maxConnections {
            resume()
        }
    }

    private func resume() {
        guard isFull else { return }
        isFull = false
        replaceable = []
        for acceptor in acceptors { acceptor.resume() }
    }

    private func failed(_ error: SystemError) {
        if room.isWorthSaying(at: loop.now) { acceptFailed(error) }
        if settings.whenFull == .replace { weakest?.stop() }
        makeRoom()
    }

    /// Ends the connections that have been idle longest, while others wait for their places.
    private func makeRoom() {
        guard !isDraining else { return }
        guard settings.whenFull == .wait else { return goOnReplacing() }
        let count = room.share(isAwaited: acceptors.contains(where: \.isAwaited))
        if count > 0 {
            let idle = connections.values.compactMap { connection in
                connection.idleSince.map { (connection: connection, since: $0) }
            }
            let longest = idle.filter { $0.since + settings.shortIdle <= loop.now }.sorted { $0.since < $1.since }
            for (connection, _) in longest.prefix(count) { connection.close() }
        }
        if connections.count >= settings.maxConnections { roomTimer?.schedule(after: Room.interval) }
    }

    private func goOnReplacing() {
        guard connections.count >= settings.maxConnections else { return }
        weakest == nil ? lookForRoomAgain() : resume()
    }

    // MARK: Deadlines

    /// A client has a new deadline. They are looked at together: a request moves its client's several times, and that
    /// must cost nothing.
    func noteDeadline(_ deadline: LoopTime) {
        guard deadline < nextSweep else { return }
        nextSweep = max(deadline, loop.now + Self.sweepInterval)
        sweep?.schedule(at: nextSweep)
    }

    private func sweepDeadlines() {
        nextSweep = LoopTime(nanoseconds: .max)
        let now = loop.now
        var next = LoopTime(nanoseconds: .max)
        for connection in connections.values {
            if connection.deadline.time <= now { connection.deadlinePassed() }
            next = min(next, connection.deadline.time)
        }
        if next.nanoseconds != .max { noteDeadline(next) }
    }

    // MARK: Stopping

    /// Goes on as before, but each answer is its connection's last: who comes again may be served elsewhere.
    public func leave() {
        if life == .serving { life = .leaving }
    }

    /// Stops accepting, lets requests finish; `done` is called when the last client is gone, perhaps at once. Who has
    /// connected by now is served.
    public func drain(_ done: @escaping () -> Void) {
        for acceptor in acceptors { acceptor.finish() }
        life = .draining
        whenEmpty = done
        listeners = [:]
        for connection in connections.values { connection.drain() }
        if connections.isEmpty { finishDraining() }
    }

    /// Ends what is still there.
    public func stop() {
        for connection in connections.values { connection.stop() }
        if connections.isEmpty { finishDraining() }
    }

    private func finishDraining() {
        let done = whenEmpty
        whenEmpty = nil
        done?()
    }
}

/// How much a connection without a whole request, or with an answer that nobody takes, may keep its place; the least
/// goes first.
struct PlaceClaim: Comparable {
    /// So long a connection has for its first request, and for each next one, before its place may be wanted.
    static let grace = Duration.milliseconds(50)

    let isStalled: Bool
    /// When its time is up by itself.
    let deadline: LoopTime

    static func < (left: PlaceClaim, right: PlaceClaim) -> Bool {
        left.isStalled == right.isStalled ? left.deadline < right.deadline : right.isStalled
    }
}

/// When more clients come than there are places: what connections that only wait for a request owe to those who wait
/// for a place.
struct Room {
    /// How often it is looked at while all places are taken.
    static let interval = Duration.milliseconds(100)
    private static let complaintInterval = Duration.seconds(10)

    private var count = 1
    private var nextComplaint = LoopTime(nanoseconds: 0)

    /// How many to end at this look: more from one to the next while the crowd stays.
    mutating func share(isAwaited: Bool) -> Int {
        guard isAwaited else {
            count = 1
            return 0
        }
        defer { count = min(count * 2, 1 << 16) }
        return count
    }

    /// Whether to say that nobody can be accepted: not each time.
    mutating func isWorthSaying(at now: LoopTime) -> Bool {
        guard now >= nextComplaint else { return false }
        nextComplaint = now + Self.complaintInterval
        return true
    }
}
