import HTTPMessage
import Reactor

/// One program's connection: reads requests and gives them to its handler in order, one at a time. Responsible for
/// buffers, limits, deadlines and keep-alive; the handler makes the answers. Loop's thread only.
///
/// A program that shuts down its side after a whole request still gets its answer. Only a reset or a failed write shows
/// that a program is gone.
public final class ServerConnection: ProgramStream, ReadinessHandler, TurnEndHandler, NextTurnHandler {
    enum Phase {
        /// Between requests, or within a head.
        case readingHead
        /// The handler has a request to answer.
        case busy
        case handedOver
        /// HTTP/2: `multiplexed` has the requests.
        case multiplexed
        case closing
        /// All output must reach the program, then the connection is reset.
        case resetting
        /// Our side is shut down. Further bytes are read and discarded, because a reset would destroy the answer.
        case lingering
        case closed
    }

    /// Callbacks that the loop will make, or is making.
    struct Schedule {
        var flushes = false
        var goesOn = false
    }

    /// Limit of unsent output in bytes. Above this limit, the answer's body must wait.
    static let highWater = 64 * 1024

    /// The server, which keeps this connection alive until the connection closes.
    let server: ServerLoop
    public let source: ProgramSource
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var stream: any ByteStream
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var handler: (any ProgramStreamHandler)?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var phase = Phase.readingHead
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var reader: RequestReader
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var output: StreamOutput
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var schedule = Schedule()
    /// Framing of the current answer's body.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var framing = BodyFraming.none
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var waits = StreamWaits()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var deadline = ConnectionDeadline.off
    /// Time at which the current head began; `nil` for a head that came in one piece.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var headBegan: LoopTime?
    /// Bytes in the kernel's send buffer when the wait for the program began.
    private var unacknowledgedAtWait = 0
    /// Number of bytes discarded after the program's last request.
    var discarded = 0
    private(set) var multiplexed: HTTP2ServerConnection?

    init(_ stream: any ByteStream, listener: Int, server: ServerLoop) {
        self.stream = stream
        source = ProgramSource(listener: listener, stream)
        self.server = server
        reader = RequestReader(server.spares)
        output = StreamOutput(server.spares)
        setDeadline(.idle, after: server.settings.idleTimeout)
    }

    func begin(_ handler: any ProgramStreamHandler) throws(SystemError) {
        try stream.register(self)
        self.handler = handler
    }

    var listener: Int { source.listener }

    /// Time of the loop's last wake-up.
    var now: LoopTime { server.loop.now }

    // MARK: Readiness

    public func ready(_ readiness: Readiness) {
        if phase == .handedOver { handler?.ready(readiness) }
        guard phase != .handedOver, phase != .closed else { return }
        // A hang-up is no failure if our side has ended in order. Reading then goes on: the handler may need the bytes.
        // Besides, unread bytes would cause a reset, which destroys the last answer.
        let isOrderly = (phase == .lingering || output.hasEnded) && !readiness.contains(.error)
        if readiness.contains(.failed), !isOrderly { return leave() }
        if output.note(readiness), waits.forRoom || !output.isEmpty { flush() }
        guard phase != .closed, !readiness.isDisjoint(with: [.readable, .peerClosed]) else { return }
        // The program has ended its side, but may still read. If the program is gone, the next write, or else a probe
        // by the kernel, causes a reset.
        if reader.input.note(readiness), phase == .busy { handler?.programEnded() }
        switch phase {
        case .readingHead: readHeads()
        case .busy:
            guard waits.forBody else { return }
            waits.forBody = false
            handler?.bodyArrived()
        case .multiplexed: multiplexed?.ready()
        case .closing, .lingering: discardInput()
        case .handedOver, .resetting, .closed: break
        }
    }

    public func nextTurn() {
        schedule.goesOn = false
        switch phase {
        case .readingHead: readHeads()
        case .multiplexed: multiplexed?.goOn()
        case .closing, .lingering: discardInput()
        case .busy, .handedOver, .resetting, .closed: break
        }
    }

    func goOnNextTurn() {
        guard !schedule.goesOn else { return }
        schedule.goesOn = true
        server.loop.atNextTurn(self)
    }

    // MARK: Heads

    /// Work for pipelined requests in one turn, in bytes: their heads, and `requestWork` for each.
    private static let pipelineShare = 64 * 1024
    private static let requestWork = 4 * 1024

    /// Reads until a request begins or the stream is empty, or until the share of a program that pipelines is used up.
    func readHeads() {
        var work = 0
        // A program that pipelines without reading its answers must wait until they are sent.
        while phase == .readingHead, output.count <= Self.highWater {
            switch reader.readHead(from: stream, server.settings) {
            case .complete:
                beginRequest()
                work += Self.requestWork + reader.request.content.bytes.count
                handler?.requestBegan()
                if work >= Self.pipelineShare, phase == .readingHead { return goOnNextTurn() }
            case .refused(let error): return beginHTTP2() ? () : refuse(error)
            case .partial:
                if deadline.kind != .head {
                    setDeadline(.head, after: server.settings.headerTimeout)
                    headBegan = now
                }
                return
            case .nothing:
                if server.isEnding(listener) { drain() } else { waitForRequest() }
                return
            case .ended: return closeAfterOutput()
            case .failed: return leave()
            }
        }
    }

    /// Switches to HTTP/2 if the program sent the connection preface (RFC 9113, section 3.4).
    private func beginHTTP2() -> Bool {
        guard server.settings.servesHTTP2, reader.input.isHTTP2, let connection = try? HTTP2ServerConnection(self)
        else {
            return false
        }
        multiplexed = connection
        deadline = .off
        phase = .multiplexed
        connection.begin()
        return true
    }

    private func waitForRequest() {
        if deadline.kind != .idle { setDeadline(.idle, after: server.settings.idleTimeout) }
    }

    private func beginRequest() {
        waits = StreamWaits()
        framing = .none
        phase = .busy
        deadline = .off
    }

    private func refuse(_ error: MessageError) {
        beginRequest()
        handler?.requestRefused(error)
    }

    // MARK: Deadlines

    public func setDeadline(after timeout: Timeout) { setDeadline(.handler, after: timeout) }

    public func setIdleDeadline(after timeout: Timeout) {
        setDeadline(.handlerIdle, after: timeout)
        if server.isEnding(listener) { drain() }
    }

    func setDeadline(_ kind: ConnectionDeadline.Kind, after timeout: Timeout) {
        setDeadline(ConnectionDeadline(kind, after: timeout, since: server.loop.now))
    }

    func setDeadline(_ deadline: ConnectionDeadline) {
        self.deadline = deadline
        server.noteDeadline(deadline.time)
    }

    func deadlinePassed() {
        let (kind, wait) = (deadline.kind, deadline.time.nanoseconds &- deadline.since.nanoseconds)
        deadline = .off
        switch kind {
        case .none: break
        case .acknowledgement: resetAfterOutput(2 &* wait)
        case .idle, .draining: closeIdle()
        case .linger: close()
        case .head:
            reader.giveUp(maxBytes: server.settings.maxHeaderBytes)
            refuse(MessageError(status: 408, detail: "The head of the request did not arrive in time."))
        case .handler, .handlerIdle: handler?.deadlinePassed()
        case .multiplexed: multiplexed?.deadlinePassed()
        // The kernel reports room only once much of its send buffer is free. Until then, the buffer's fill level shows
        // whether the program reads slowly or not at all.
        case .room:
            if stream.unacknowledged < unacknowledgedAtWait { return waitForProgram() }
            stream.resetOnClose()
            leave(.stalled)
        }
    }

    func waitForProgram() {
        unacknowledgedAtWait = stream.unacknowledged
        setDeadline(.room, after: server.settings.outputTimeout)
    }

    /// Returns `headBegan` and clears it.
    func takeHeadBegan() -> LoopTime? {
        defer { headBegan = nil }
        return headBegan
    }
}
