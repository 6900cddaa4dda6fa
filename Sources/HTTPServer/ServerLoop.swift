import Reactor

/// The part of an HTTP server that runs on one loop: listeners and programs' connections. Loop's thread only.
public final class ServerLoop {
    /// Shortest time between two checks of the programs' deadlines.
    private static let sweepInterval = Duration.milliseconds(50)

    public let loop: EventLoop
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    public private(set) var settings: ServerSettings
    let spares = SpareBuffers()
    var date = DateField()
    var turnWork = TurnWork()
    private enum Life {
        case serving
        /// New requests are answered, and each answer ends its connection.
        case leaving
        /// - Parameter done: called after the last program has left.
        case draining(done: () -> Void)
        case drained
    }

    private var life = Life.serving
    public var isDraining: Bool {
        switch life {
        case .draining, .drained: true
        case .serving, .leaving: false
        }
    }
    private let makeHandler: (ServerConnection) -> any ProgramStreamHandler
    private struct Acceptance {
        let admits: ((PeerCredentials?) -> Bool)?
        let wrapStream: ((any ByteStream, Int) -> (any ByteStream)?)?
        let failed: (SystemError) -> Void
    }

    private let acceptance: Acceptance
    private var acceptors: [Acceptor] { Array(listeners.values) }
    private var listeners: [Int: Acceptor] = [:]
    private var hasClosed = false
    private var connections: [ObjectIdentifier: ServerConnection] = [:]
    public var count: Int { connections.count }
    private var room = Room()
    private var roomTimer: LoopTimer?
    private var sweep: LoopTimer?
    private var nextSweep = LoopTime(nanoseconds: .max)

    /// - Parameters:
    ///   - admits: checks the caller on a Unix socket. A caller that is not admitted is disconnected before anything is
    ///     read.
    ///   - wrapStream: wraps each accepted stream in another one, such as TLS. If it returns `nil`, the connection is
    ///     closed. Without `wrapStream` nothing is wrapped.
    ///   - acceptFailed: called at a limited rate when accepting fails, usually for lack of file descriptors. The
    ///     server then tries again.
    ///   - makeHandler: called for each connection.
    public init(
        _ settings: ServerSettings, on loop: EventLoop, admits: ((PeerCredentials?) -> Bool)? = nil,
        wrapStream: ((any ByteStream, Int) -> (any ByteStream)?)? = nil,
        acceptFailed: @escaping (SystemError) -> Void,
        makeHandler: @escaping (ServerConnection) -> any ProgramStreamHandler
    ) {
        self.settings = settings
        self.loop = loop
        acceptance = Acceptance(admits: admits, wrapStream: wrapStream, failed: acceptFailed)
        self.makeHandler = makeHandler
        sweep = LoopTimer(on: loop) { [unowned self] in sweepDeadlines() }
        roomTimer = LoopTimer(on: loop) { [unowned self] in makeRoom() }
    }

    /// Starts to accept connections.
    /// - Parameter listener: number that `ProgramSource.listener` has in each accepted connection.
    public func listen(_ socket: ListeningSocket, listener: Int) throws(SystemError) {
        let acceptor = try Acceptor(
            socket, on: loop, accepted: { [unowned self] in accept($0, listener) },
            failed: { [unowned self] in failed($0) })
        listeners[listener] = acceptor
        if room.isFull { acceptor.pause() }
    }

    /// Stops accepting on this listener. Its idle connections close after `drainIdleTimeout`, busy ones after their
    /// answer.
    public func stopListening(_ listener: Int) {
        listeners.removeValue(forKey: listener)?.finish()
        hasClosed = true
        for connection in connections.values where connection.listener == listener { connection.drain() }
    }

    /// Whether a connection of `listener` ends after its answer.
    func isEnding(_ listener: Int) -> Bool {
        guard case .serving = life else { return true }
        return hasClosed && listeners[listener] == nil
    }

    /// Replaces the settings. Deadlines that are already set stay.
    public func update(_ settings: ServerSettings) {
        self.settings = settings
        if connections.count < settings.maxConnections { resume() }
    }

    // MARK: Programs

    private func accept(_ socket: StreamSocket, _ listener: Int) {
        guard let wrapStream = acceptance.wrapStream else { return serve(socket, listener: listener) }
        guard let stream = wrapStream(socket, listener) else { return socket.close() }
        serve(stream, listener: listener)
    }

    /// Serves the requests on `stream` as if `listener` had accepted the connection.
    public func serve(_ stream: any ByteStream, listener: Int) {
        let connection = ServerConnection(stream, listener: listener, server: self)
        guard acceptance.admits?(connection.source.peer) ?? true else { return connection.close() }
        if settings.whenFull == .replace, connections.count >= settings.maxConnections { endWeakest() }
        do throws(SystemError) { try connection.begin(makeHandler(connection)) } catch { return failed(error) }
        connections[ObjectIdentifier(connection)] = connection
        guard connections.count >= settings.maxConnections else { return }
        if settings.whenFull == .replace {
            // The new connection's request may have arrived already.
            connection.ready(.readable)
            if weakest != nil { return }
        }
        room.isFull = true
        for acceptor in acceptors { acceptor.pause() }
        lookForRoomAgain()
    }

    private func lookForRoomAgain() {
        roomTimer?.schedule(after: settings.whenFull == .wait ? Room.interval : SlotClaim.grace / 5)
    }

    /// The connection to replace first; `nil` when none may be replaced.
    private var weakest: ServerConnection? {
        if room.replaceableAt != loop.now || room.replaceable.isEmpty {
            room.replaceableAt = loop.now
            room.replaceable = connections.values.compactMap { connection in
                connection.claim.map { (connection: connection, claim: $0) }
            }.sorted { $1.claim < $0.claim }.map(\.connection)
        }
        while let last = room.replaceable.last, last.claim == nil { room.replaceable.removeLast() }
        return room.replaceable.last
    }

    /// Ends the weakest connection, after another read: its request may have arrived during a long turn of the loop.
    private func endWeakest() {
        let count = connections.count
        while connections.count == count, let connection = weakest {
            if connection.phase != .lingering { connection.ready(.readable) }
            if connection.claim != nil { connection.cut() }
        }
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
        guard room.isFull else { return }
        room.isFull = false
        room.replaceable = []
        for acceptor in acceptors { acceptor.resume() }
    }

    private func failed(_ error: SystemError) {
        if room.mayReport(at: loop.now) { acceptance.failed(error) }
        if settings.whenFull == .replace { endWeakest() }
        makeRoom()
    }

    /// With `.wait`, closes the connections that were idle longest, if new programs wait. With `.replace`, accepts
    /// again once a connection may be replaced.
    private func makeRoom() {
        guard !isDraining else { return }
        guard settings.whenFull == .wait else { return goOnReplacing() }
        let count = room.share(isAwaited: acceptors.contains(where: \.isAwaited))
        if count > 0 {
            let idle = connections.values.compactMap { connection in
                connection.idleSince.map { (connection: connection, since: $0) }
            }
            let longest = idle.filter { $0.since + settings.shortIdle <= loop.now }.sorted { $0.since < $1.since }
            for (connection, _) in longest.prefix(count) { connection.makeRoom() }
        }
        if connections.count >= settings.maxConnections { roomTimer?.schedule(after: Room.interval) }
    }

    private func goOnReplacing() {
        guard connections.count >= settings.maxConnections else { return }
        weakest == nil ? lookForRoomAgain() : resume()
    }

    // MARK: Deadlines

    /// Notes a program's new deadline. One timer serves all deadlines: each request sets several, so setting a deadline
    /// must be cheap.
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

    /// Goes on accepting, but closes each connection after its answer. A program may then reconnect to another process.
    public func leave() {
        if case .serving = life { life = .leaving }
    }

    /// Stops accepting and lets requests finish. Programs that have already connected are still served. `done` is
    /// called after the last program has left, perhaps at once.
    public func drain(_ done: @escaping () -> Void) {
        for acceptor in acceptors { acceptor.finish() }
        life = .draining(done: done)
        listeners = [:]
        for connection in connections.values { connection.drain() }
        if connections.isEmpty { finishDraining() }
    }

    public func stop() {
        for connection in connections.values { connection.stop() }
        if connections.isEmpty { finishDraining() }
    }

    private func finishDraining() {
        guard case .draining(let done) = life else { return }
        life = .drained
        done()
    }
}
