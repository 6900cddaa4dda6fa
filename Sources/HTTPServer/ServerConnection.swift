import HTTPMessage
import Reactor

/// One client's connection: reads requests, has them answered in order, one at a time. Knows sockets, buffers, limits,
/// deadlines and keep-alive, and nothing of what the answers are. Loop's thread only.
///
/// A client that ends its side after a whole request gets its answer; that it is gone altogether shows in a reset or a
/// write that fails.
public final class ServerConnection: ReadinessHandler, TurnEndHandler, NextTurnHandler {
    enum Phase {
        /// Between requests, or in the middle of a head.
        case readingHead
        /// The handler has a request to answer.
        case busy
        /// The handler has the socket.
        case handedOver
        /// The last answer is going out.
        case closing
        /// Our side is shut down; what the client still sends is thrown away, so that no reset eats the answer.
        case lingering
        case closed
    }

    /// What it will be called for by the loop, or is within.
    struct Schedule {
        var flushes = false
        var goesOn = false
        var readsHeads = false
    }

    /// What the handler will be called for.
    struct Waits {
        var forBody = false
        var forRoom = false
    }

    /// Output that waits for the client; past this nothing should be added.
    public static let highWater = 64 * 1024

    /// Holds this connection until it is closed.
    public let server: ServerLoop
    /// Which of the server's listeners it came in at.
    public let listener: Int
    /// Who called, on a Unix socket.
    public let peer: PeerCredentials?
    let socket: StreamSocket
    var handler: (any ConnectionHandler)?
    var phase = Phase.readingHead
    var reader: RequestReader
    var output: SocketOutput
    var schedule = Schedule()
    var waits = Waits()
    private(set) var deadline = ConnectionDeadline.off
    /// When a head began that did not come in one piece.
    private var headBegan: LoopTime?
    /// What the kernel held for the client when we began to wait for it.
    private var unacknowledged = 0
    /// How much of what the client sent behind its last request was thrown away.
    var discarded = 0

    init(_ socket: StreamSocket, listener: Int, server: ServerLoop) {
        self.socket = socket
        self.listener = listener
        self.server = server
        peer = socket.peerCredentials
        reader = RequestReader(server.spares)
        output = SocketOutput(server.spares)
        setDeadline(.idle, after: server.settings.idleTimeout)
    }

    /// From where it comes; `nil` on a Unix socket.
    public var peerAddress: SocketAddress? { socket.peerAddress }

    /// Where it came in: of a listener for every address, the one that was dialled.
    public var localAddress: SocketAddress? { socket.localAddress }

    func begin(_ handler: any ConnectionHandler) throws(SystemError) {
        try socket.register(self)
        self.handler = handler
    }

    /// The moment at which the loop woke up last.
    public var now: LoopTime { server.loop.now }

    public var loop: EventLoop { server.loop }

    // MARK: Readiness

    public func ready(_ readiness: Readiness) {
        if phase == .handedOver {
            handler?.ready(self, readiness)
            return
        }
        guard phase != .closed else { return }
        // Both sides have ended: what the client has sent is still read. It is wanted, or no reset is to eat the last answer.
        let isOrderly = (phase == .lingering || output.hasEnded) && !readiness.contains(.error)
        if readiness.contains(.failed), !isOrderly { return leave() }
        if output.note(readiness), waits.forRoom || !output.isEmpty { flush() }
        guard phase != .closed, !readiness.isDisjoint(with: [.readable, .peerClosed]) else { return }
        // It has sent all it wanted to, and may still read. If it is gone, what we write next comes back as a reset;
        // while there is nothing to write, the kernel asks.
        if reader.input.note(readiness) {
            socket.probePeer()
            if phase == .busy { handler?.clientEnded(self) }
        }
        switch phase {
        case .readingHead: readHeads()
        case .busy:
            guard waits.forBody else { return }
            waits.forBody = false
            handler?.bodyArrived(self)
        case .closing, .lingering: discardInput()
        case .handedOver, .closed: break
        }
    }

    public func nextTurn() {
        schedule.goesOn = false
        switch phase {
        case .readingHead: readHeads()
        case .closing, .lingering: discardInput()
        case .busy, .handedOver, .closed: break
        }
    }

    func goOnNextTurn() {
        guard !schedule.goesOn else { return }
        schedule.goesOn = true
        server.loop.atNextTurn(self)
    }

    // MARK: Heads

    /// Reads until a request is under way or nothing more is there.
    func readHeads() {
        guard !schedule.readsHeads else { return }
        schedule.readsHeads = true
        defer { schedule.readsHeads = false }
        // A client that pipelines without reading waits until its answers are out.
        while phase == .readingHead, output.count <= Self.highWater {
            switch reader.readHead(from: socket, server.settings) {
            case .complete:
                beginRequest()
                handler?.requestBegan(self)
            case .refused(let error): return refuse(error)
            case .partial:
                if deadline.kind != .head {
                    setDeadline(.head, after: server.settings.headerTimeout)
                    headBegan = now
                }
                return
            case .nothing:
                if server.isEnding(listener) { drain() } else { waitForRequest() }
                return
            case .ended: return closeBehindOutput()
            case .failed: return leave()
            }
        }
    }

    private func waitForRequest() {
        if deadline.kind != .idle { setDeadline(.idle, after: server.settings.idleTimeout) }
    }

    private func beginRequest() {
        waits = Waits()
        phase = .busy
        clearDeadline()
    }

    private func refuse(_ error: MessageError) {
        beginRequest()
        handler?.requestRefused(self, error)
    }

    // MARK: The request

    /// The head of the request that is being answered.
    public var head: RequestHead { reader.head }

    /// Reads the head, and the bytes that it has ranges into.
    public func withHead<Result, Failure: Error>(
        _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try reader.withHead(read)
    }

    /// Its body has been taken to its end.
    public var isRequestComplete: Bool { reader.isComplete }

    /// Bytes of the body that were taken in this pass.
    public var bodyTaken: UInt64 { reader.taken }

    /// Those that may be passed on; complete once the body is.
    public var bodyTrailers: [(name: [UInt8], value: [UInt8])] { reader.trailers }

    /// Whether bytes stand behind the request's head that were sent without waiting for an answer.
    public var hasInput: Bool { !reader.input.isEmpty }

    /// Reads what has come from the client by now, so that `hasInput` is true to the moment.
    /// - Returns: false when the client is gone; `clientLeft` was called.
    public func lookForInput() -> Bool {
        guard phase == .busy, !reader.lookForInput(at: socket) else { return phase == .busy }
        leave()
        return false
    }

    /// The client has ended its side, though earlier bytes may be unread. A client that is gone looks the same.
    public var hasClientEnded: Bool { reader.input.isEnding }

    /// Keeps what is taken of the body, up to `limit` bytes, so that it can be taken again.
    public func keepBody(upTo limit: Int) { reader.keep(upTo: limit) }

    /// Whether the body can be taken again from its first byte.
    public var canRewindBody: Bool { reader.canRewind }

    /// - Returns: false when a part is gone; nothing has changed then.
    public func rewindBody() -> Bool { reader.rewind() }

    /// From here on all that the client sends is body, as it is, until it ends its side: the protocol has changed.
    public func beginRawBody() { reader.beginRaw() }

    public enum BodyStep: Sendable, Equatable {
        /// So many bytes were put in; not zero.
        case bytes(Int)
        /// Nothing now: `bodyArrived` says when to ask again.
        case wait
        case end
        /// The client has ended its side in the middle of it.
        case cut
        /// The client is gone; `clientLeft` was called.
        case gone
    }

    /// Takes the next piece of the body.
    /// - Throws: `MessageError` for chunks that are malformed.
    public func takeBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyStep {
        waits.forBody = false
        let step = try reader.take(from: socket, into: &room)
        switch step {
        case .wait: waits.forBody = true
        case .gone: leave()
        case .bytes, .end, .cut: break
        }
        return step
    }

    // MARK: Deadlines

    /// Has `deadlinePassed` called, unless the request ends or `clearDeadline` is called before.
    public func setDeadline(after timeout: Timeout) { setDeadline(.handler, after: timeout) }

    func setDeadline(_ kind: ConnectionDeadline.Kind, after timeout: Timeout) {
        guard let nanoseconds = timeout.nanoseconds else { return clearDeadline() }
        let time = server.loop.now.advanced(by: nanoseconds)
        deadline = ConnectionDeadline(kind, at: time)
        server.noteDeadline(time)
    }

    public func clearDeadline() { deadline = .off }

    func deadlinePassed() {
        let kind = deadline.kind
        clearDeadline()
        switch kind {
        case .none: break
        case .idle, .farewell: closeIdle()
        case .linger: close()
        case .head:
            reader.giveUp(maxBytes: server.settings.maxHeaderBytes)
            refuse(MessageError(status: 408, detail: "The head of the request did not arrive in time."))
        case .handler: handler?.deadlinePassed(self)
        // The kernel asks for more once a good part of its buffer is free: until then, a client that reads slowly is
        // told from one that does not by what the kernel holds.
        case .room:
            if socket.unacknowledged < unacknowledged { return waitForClient() }
            socket.resetOnClose()
            leave(.cutOff)
        }
    }

    /// Nothing goes on until the client takes some of what is there for it.
    func waitForClient() {
        unacknowledged = socket.unacknowledged
        setDeadline(.room, after: server.settings.stallTimeout ?? server.settings.idleTimeout)
    }

    /// When the current request's head began, if it did not come in one piece; asked once for each request.
    func takeHeadBegan() -> LoopTime? {
        defer { headBegan = nil }
        return headBegan
    }

    /// Since when it waits for a request; `nil` when it has one, or an answer that is not out.
    var idleSince: LoopTime? {
        guard phase == .readingHead, deadline.kind == .idle, reader.input.isEmpty, output.isEmpty else { return nil }
        return LoopTime(nanoseconds: deadline.time.nanoseconds &- (server.settings.idleTimeout.nanoseconds ?? 0))
    }

    /// What it has to its place; `nil` while its request is answered, or could be on its way.
    var claim: PlaceClaim? {
        if let idleSince, now.since(idleSince) < PlaceClaim.grace { return nil }
        let isWaiting =
            switch phase {
            case .readingHead: output.isEmpty
            case .busy: handler?.awaitsRequest == true
            case .lingering: true
            case .closing, .handedOver, .closed: false
            }
        guard isWaiting || deadline.kind == .room else { return nil }
        return PlaceClaim(isStalled: !isWaiting, deadline: deadline.time)
    }
}
