import HTTP2
import HTTPMessage
import Reactor

/// An HTTP/2 connection of a program, with an `HTTP2ProgramStream` for each request. Uses the byte stream and the
/// buffers of its `ServerConnection`. Loop's thread only.
final class HTTP2ServerConnection {
    /// Limit of bytes written in one turn, and of the work for bytes read, so that other connections get their turn.
    static let share = 256 * 1024
    /// Work for the start of a request, beside the work for its head. The request may be answered at once.
    private static let requestWork = 2 * 1024
    /// Time limit for the program's answer to the PING that follows the first GOAWAY.
    private static let noticeTimeout = Timeout(.seconds(1))

    enum Life {
        case serving
        /// The first GOAWAY was queued. Requests that are on their way are still served.
        case announced
        /// No new request is served.
        case ending
        /// Nothing more is read or answered. The connection ends with the turn.
        case hungUp
    }

    let session: HTTP2Session
    unowned let connection: ServerConnection
    let server: ServerLoop
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var streams: [Int32: HTTP2ProgramStream] = [:]
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var streamsWithUnsentHead: [HTTP2ProgramStream] = []
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var life = Life.serving
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var hasFailed = false
    /// Deadline of the connection itself: for the next request, or for a program that takes no output.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var ownDeadline = ConnectionDeadline.off
    private var unacknowledgedAtWait = 0
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var allowance = HTTP2Allowance()
    /// Streams whose answers wait for room in the allowance.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var awaitingRoom: [HTTP2ProgramStream] = []
    /// Work for the bytes that are being handled, in bytes: received, decoded, and for requests.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var work = 0

    init(_ connection: ServerConnection) throws(HTTP2Error) {
        self.connection = connection
        server = connection.server
        var settings = HTTP2Settings()
        settings.maxHeaderListBytes = server.settings.maxHeaderBytes
        settings.maxFields = server.settings.maxFields
        settings.connectionWindow = HTTP2Allowance.bodies
        settings.boundsBodies = true
        session = try HTTP2Session(.server, settings, spares: server.spares, at: server.loop.now)
    }

    var isIdle: Bool { streams.isEmpty }

    /// Performs a call that fails only for lack of memory. A failure ends the connection.
    func attempt(_ call: (HTTP2Session) throws(HTTP2Error) -> Void) {
        do throws(HTTP2Error) { try call(session) } catch { hasFailed = true }
    }

    // MARK: Input

    /// Begins with the bytes read so far, which begin with the connection preface or a part of it.
    func begin() {
        // The program's SETTINGS are a part of its preface, and have the time limit of a head.
        set(.head, after: server.settings.headerTimeout)
        receive()
    }

    func handleEvents(_ bytes: Span<UInt8>) {
        var held: HTTP2Event?
        while connection.phase == .multiplexed, life != .hungUp, let event = held ?? session.next() {
            held = nil
            switch event {
            case .head(let id, let block):
                held = session.next()
                begin(id, block, isBodiless: held == .ended(stream: id))
            case .trailers(let id, let block): takeTrailers(id, block)
            case .data(let id, let range): streams[id]?.received(bytes.extracting(range))
            case .ended(let id): streams[id]?.requestEnded()
            case .room(let id): streams[id]?.roomCame()
            case .closed(let id, _):
                streams.removeValue(forKey: id)?.leave(.gone)
                if streams.isEmpty { waitForRequest() }
            case .pong: if life == .announced { sendLastGoAway() }
            case .settings: if ownDeadline.kind == .head { waitForRequest() }
            case .goAway, .interim, .sent: break
            }
        }
    }

    private func begin(_ id: Int32, _ block: HTTP2Block, isBodiless: Bool) {
        work += Self.requestWork
        guard admits(block) else { return session.refuse(id) }
        let stream = HTTP2ProgramStream(id, of: self, server: server, source: connection.source)
        guard let handler = connection.handler?.handler(for: stream) else {
            session.reset(id, .refusedStream)
            return sendLastGoAway()
        }
        streams[id] = stream
        if ownDeadline.kind == .idle || ownDeadline.kind == .head { ownDeadline = .off }
        stream.begin(
            session.received, block, isSecure: connection.stream.isSecure, isBodiless: isBodiless, for: handler)
    }

    private func takeTrailers(_ id: Int32, _ block: HTTP2Block) {
        guard let stream = streams[id] else { return }
        do throws(MessageError) {
            guard !block.isTooLarge else { throw MessageError(status: 431, detail: "The trailers are too large.") }
            stream.received(trailers: try HTTP2RequestHead.trailers(session.received, block.fields))
        } catch {
            session.reset(id, .protocolError)
            stream.leave(.gone)
        }
    }

    // MARK: Output

    /// Holds the answer's head until its body or end comes, or the turn ends. Then the head is sent.
    func awaitBody(of stream: HTTP2ProgramStream) { streamsWithUnsentHead.append(stream) }

    func scheduleFlush() { connection.scheduleFlush() }

    /// Writes frames until all are sent or the socket is full. Then answers that waited for room go on.
    func flush() {
        if life == .hungUp { return endHungUp() }
        writeFrames()
        if connection.phase == .multiplexed { giveRoom() }
    }

    private func writeFrames() {
        let pending = streamsWithUnsentHead
        streamsWithUnsentHead.removeAll(keepingCapacity: true)
        for stream in pending { stream.sendHead(hasBody: true) }
        if server.isEnding(connection.listener) { drain() }
        var share = Self.share
        while connection.phase == .multiplexed {
            guard share > 0 else { return connection.goOnNextTurn() }
            let waiting = connection.output.count
            var count = 0
            connection.output.append { output in
                let before = output.count
                attempt { session throws(HTTP2Error) in
                    try session.fill(&output, limit: ServerConnection.highWater)
                }
                count = output.count - before
            }
            let nothing: [UInt8] = []
            handleEvents(nothing.span)
            guard connection.phase == .multiplexed else { return }
            guard let left = connection.output.flush(to: connection.stream) else { return connection.leave() }
            guard left == 0 else { return waitForProgram(hasTaken: left < waiting + count) }
            if ownDeadline.kind == .room { waitForRequest() }
            // An ending connection does not wait for `isFinished`, which stays false during a program's incomplete
            // head.
            if hasFailed || session.isFinished || life == .ending && streams.isEmpty { return close() }
            // The session may have had no room for frames behind output that was unsent until now.
            guard count > 0 || waiting > 0 else { break }
            share -= count
        }
        // Reading may have paused because of unsent output.
        if connection.phase == .multiplexed, hasInput { connection.goOnNextTurn() }
    }

    /// Ends the connection of a program that asks for too much, with all of its streams.
    func hangUp() {
        life = .hungUp
        scheduleFlush()
    }

    /// Sends GOAWAY if there is room, and closes the connection.
    private func endHungUp() {
        attempt { session throws(HTTP2Error) in try session.goAway(.enhanceYourCalm) }
        connection.output.append { output in
            attempt { session throws(HTTP2Error) in try session.fill(&output, limit: ServerConnection.highWater) }
        }
        _ = connection.output.flush(to: connection.stream)
        connection.leave()
    }

    /// Closes the connection after its last frame, which may be a GOAWAY.
    private func close() {
        end(.gone)
        connection.finishClosing()
    }

    func end(_ leaving: ProgramLeaving) {
        let open = streams.values
        streams = [:]
        streamsWithUnsentHead = []
        awaitingRoom = []
        for stream in open { stream.leave(leaving) }
    }

    // MARK: Deadlines

    /// Moves the connection's timer to this time if it is earlier.
    func noteDeadline(_ time: LoopTime) {
        guard time < connection.deadline.time else { return }
        connection.setDeadline(ConnectionDeadline(.multiplexed, at: time, since: server.loop.now))
    }

    /// Sets the connection's own deadline for times without unsent output.
    private func waitForRequest() {
        switch life {
        case .serving: set(.idle, after: streams.isEmpty ? server.settings.idleTimeout : .off)
        case .announced: set(.draining, after: Self.noticeTimeout)
        case .ending, .hungUp: ownDeadline = .off
        }
    }

    /// - Parameter hasTaken: whether the program has taken some of the output.
    private func waitForProgram(hasTaken: Bool) {
        guard hasTaken || ownDeadline.kind != .room else { return }
        unacknowledgedAtWait = connection.stream.unacknowledged
        set(.room, after: server.settings.outputTimeout)
    }

    private func set(_ kind: ConnectionDeadline.Kind, after timeout: Timeout) {
        ownDeadline = ConnectionDeadline(kind, after: timeout, since: server.loop.now)
        noteDeadline(ownDeadline.time)
    }

    /// Time since which no request is in progress; `nil` during a request.
    var idleSince: LoopTime? { isIdle && ownDeadline.kind == .idle ? ownDeadline.since : nil }

    func deadlinePassed() {
        let now = server.loop.now
        for stream in Array(streams.values) where stream.deadline.time <= now { stream.deadlinePassed() }
        guard connection.phase == .multiplexed else { return }
        if ownDeadline.time <= now { ownDeadlinePassed() }
        guard connection.phase == .multiplexed else { return }
        let next = streams.values.reduce(ownDeadline.time) { min($0, $1.deadline.time) }
        if next < ConnectionDeadline.never { noteDeadline(next) }
    }

    private func ownDeadlinePassed() {
        let kind = ownDeadline.kind
        ownDeadline = .off
        switch kind {
        case .head, .idle, .draining: sendLastGoAway()
        case .room:
            if connection.stream.unacknowledged < unacknowledgedAtWait { return waitForProgram(hasTaken: true) }
            connection.stream.resetOnClose()
            connection.leave(.stalled)
        case .none, .handler, .handlerIdle, .linger, .acknowledgement, .multiplexed: break
        }
    }

    // MARK: The end

    /// Announces the end by GOAWAY. Requests that are on their way are still served (RFC 9113, section 6.8).
    func drain() {
        guard life == .serving else { return }
        life = .announced
        attempt { session throws(HTTP2Error) in
            try session.announceEnd()
            try session.ping(0)
        }
        set(.draining, after: Self.noticeTimeout)
        scheduleFlush()
    }

    /// Sends the GOAWAY after which no new request is served. The connection ends with its last stream.
    func sendLastGoAway() {
        guard life != .ending, life != .hungUp else { return }
        life = .ending
        ownDeadline = .off
        attempt { session throws(HTTP2Error) in try session.goAway(.noError) }
        scheduleFlush()
    }
}
