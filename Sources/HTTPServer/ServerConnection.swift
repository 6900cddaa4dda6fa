import HTTPMessage
import Reactor

/// One client's connection: reads requests, has them answered in order, one at a time. Knows sockets, buffers, limits,
/// deadlines and keep-alive, and nothing of what the answers are. Loop's thread only.
///
/// A client that ends its side after a whole request gets its answer; that it is gone altogether shows in a reset or a
/// write that fails.
public final class ServerConnection: ReadinessHandler, TurnEndHandler, NextTurnHandler {
    private enum Phase {
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

    private enum Deadline { case none, idle, head, handler, clientStalled, linger }

    /// Output that waits for the client; past this nothing should be added.
    public static let highWater = 64 * 1024
    /// Of a request that was answered before its end, so much is read and thrown away: a program that sends all before
    /// it reads still gets the answer.
    private static let maxDiscarded = 64 << 20
    /// So long a client has to take its last answer once it is all sent.
    private static let lingerTimeout = Timeout(.seconds(2))

    /// Holds this connection until it is closed.
    public let server: ServerLoop
    /// Which of the server's listeners it came in at.
    public let listener: Int
    /// Who called, on a Unix socket.
    public let peer: PeerCredentials?
    private let socket: StreamSocket
    private var handler: (any ConnectionHandler)?

    private var phase = Phase.readingHead
    private var input = SocketInput()
    private var output = SocketOutput()
    private var isFlushScheduled = false
    private var isTurnScheduled = false
    private var isReadingHeads = false
    private var waitsForRoom = false
    private var waitsForBody = false
    private var discarded = 0
    /// What the kernel held for the client when we began to wait for it.
    private var unacknowledged = 0
    private(set) var deadline = LoopTime(nanoseconds: .max)
    private var deadlineKind = Deadline.none

    // The request that is being answered.
    public private(set) var head = RequestHead()
    private var headBytes = ByteBuffer()
    private var body = RequestBody()
    private var hasRequestEnded = true

    init(_ socket: StreamSocket, listener: Int, server: ServerLoop) {
        self.socket = socket
        self.listener = listener
        self.server = server
        peer = socket.peerCredentials
        setDeadline(.idle, after: server.settings.idleTimeout)
    }

    /// From where it comes; `nil` on a Unix socket.
    public var peerAddress: SocketAddress? { socket.peerAddress }

    /// Where it came in: of a listener for every address, the one that was dialled.
    public var localAddress: SocketAddress? { socket.localAddress }

    func begin(_ handler: any ConnectionHandler) throws(SystemError) {
        self.handler = handler
        try socket.register(self)
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
        // Both sides have ended: what the client has sent is still read, so that no reset eats the last answer.
        let isOrderly = phase == .lingering && !readiness.contains(.error)
        if readiness.contains(.failed), !isOrderly { return leave() }
        if output.note(readiness) { flush() }
        guard phase != .closed, !readiness.isDisjoint(with: [.readable, .peerClosed]) else { return }
        // It has sent all it wanted to, and may still read. If it is gone, what we write next comes back as a reset;
        // while there is nothing to write, the kernel asks.
        if input.note(readiness) { socket.probePeer() }
        switch phase {
        case .readingHead: readHeads()
        case .busy:
            guard waitsForBody else { return }
            waitsForBody = false
            handler?.bodyArrived(self)
        case .closing, .lingering: discardInput()
        case .handedOver, .closed: break
        }
    }

    public func nextTurn() {
        isTurnScheduled = false
        switch phase {
        case .readingHead: readHeads()
        case .closing, .lingering: discardInput()
        case .busy, .handedOver, .closed: break
        }
    }

    private func goOnNextTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        server.loop.atNextTurn(self)
    }

    /// One read.
    private func fill(limit: Int) {
        if !input.fill(from: socket, limit: limit) { leave() }
    }

    // MARK: Heads

    /// Reads and parses until a request is under way or nothing more is there.
    private func readHeads() {
        guard !isReadingHeads else { return }
        isReadingHeads = true
        defer { isReadingHeads = false }
        while phase == .readingHead {
            if input.canRead, input.count <= server.settings.maxHeaderBytes { fill(limit: 16 * 1024) }
            guard phase == .readingHead, parseHead() else { return }
        }
    }

    /// - Returns: whether it is worth looking again.
    private func parseHead() -> Bool {
        // A client that pipelines without reading waits until its answers are out.
        guard output.count <= Self.highWater else { return false }
        if input.isEmpty {
            if input.hasEnded || server.isDraining { closeBehindOutput() } else { waitForRequest() }
            return false
        }
        let settings = server.settings
        let parsed: RequestHead.Status
        do throws(MessageError) {
            parsed = try head.parse(
                input.buffer.bytes, limits: HeadLimits(maxBytes: settings.maxHeaderBytes, maxFields: settings.maxFields)
            )
        } catch {
            refuseHead(error)
            return false
        }
        guard case .complete(let length) = parsed else {
            if input.hasEnded {
                closeBehindOutput()
            } else if deadlineKind != .head {
                setDeadline(.head, after: settings.headerTimeout)
            }
            return input.canRead && !input.hasEnded
        }
        beginRequest(length: length)
        body.begin(head.framing)
        hasRequestEnded = body.isDone
        handler?.requestBegan(self)
        return true
    }

    private func waitForRequest() {
        if deadlineKind != .idle { setDeadline(.idle, after: server.settings.idleTimeout) }
        if input.buffer.capacity > Self.highWater { input.buffer.release() }
        if output.isEmpty, output.buffer.capacity > Self.highWater { output.release() }
    }

    /// Takes the head off the input.
    private func beginRequest(length: Int) {
        headBytes.removeAll()
        headBytes.append(input.buffer.bytes.extracting(0..<length))
        input.buffer.consume(length)
        body.begin(.none)
        // What follows a head that can't be read is no request.
        hasRequestEnded = false
        waitsForBody = false
        waitsForRoom = false
        phase = .busy
        clearDeadline()
    }

    /// What it says so far can still be read.
    private func refuseHead(_ error: MessageError) {
        beginRequest(length: 0)
        input.buffer.withBytes { headBytes.append($0.extracting(first: server.settings.maxHeaderBytes)) }
        handler?.requestRefused(self, error)
    }

    // MARK: The request

    /// Reads the head, and the bytes that it has ranges into.
    public func withHead<Result, Failure: Error>(
        _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try headBytes.withBytes { bytes throws(Failure) in try read(head, bytes) }
    }

    /// Its body has been taken to its end.
    public var isRequestComplete: Bool { hasRequestEnded }

    /// Bytes of the body that were taken in this pass.
    public var bodyTaken: UInt64 { body.taken }

    /// Those that may be passed on; complete once the body is.
    public var bodyTrailers: [(name: [UInt8], value: [UInt8])] { body.trailers }

    /// Whether bytes stand behind the request's head that were sent without waiting for an answer.
    public var hasInput: Bool { !input.isEmpty }

    /// Reads what has come from the client by now, so that `hasInput` is true to the moment.
    /// - Returns: false when the client is gone; `clientLeft` was called.
    public func lookForInput() -> Bool {
        if input.canRead, phase == .busy { fill(limit: 16 * 1024) }
        return phase == .busy
    }

    /// - Throws: what is wrong with as much of a chunked body as is at hand.
    public func checkBody() throws(MessageError) { try body.check(input.buffer) }

    /// Keeps what is taken of the body, up to `limit` bytes, so that it can be taken again.
    public func keepBody(upTo limit: Int) { body.keep(upTo: limit) }

    /// Whether the body can be taken again from its first byte.
    public var canRewindBody: Bool { !body.isSpent }

    /// - Returns: false when a part is gone; nothing has changed then.
    public func rewindBody() -> Bool {
        guard body.rewind() else { return false }
        hasRequestEnded = body.isDone
        return true
    }

    /// From here on all that the client sends is body, as it is, until it ends its side: the protocol has changed.
    public func beginRawBody() {
        body.release(&input.buffer)
        body.begin(.untilClose)
        hasRequestEnded = false
    }

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
        waitsForBody = false
        while !body.isDone {
            if input.canRead, !hasRequestEnded, !body.isSatisfied(by: input.buffer, room: room.count) {
                fill(limit: 64 * 1024)
                guard phase == .busy else { return .gone }
            }
            let count = try body.take(from: &input.buffer, into: &room)
            if body.isDone { hasRequestEnded = true }
            if count > 0 { return .bytes(count) }
            if body.isDone { break }
            if input.canRead { continue }
            if input.hasEnded {
                guard body.isRaw else { return .cut }
                hasRequestEnded = true
                return .end
            }
            waitsForBody = true
            return .wait
        }
        return .end
    }

    // MARK: The answer

    /// Whether an answer must say `Connection: close`.
    public var mustClose: Bool { server.isDraining }

    /// Appends to what goes out, in one piece at the end of the loop's turn.
    public func write(_ append: (inout ByteBuffer) -> Void) {
        guard phase == .busy else { return }
        output.append(append)
        scheduleFlush()
    }

    /// Writes a piece of content, without copying what the kernel takes at once.
    /// - Returns: false when the client is gone; `clientLeft` was called.
    public func write(body piece: Span<UInt8>) -> Bool {
        guard phase == .busy else { return false }
        switch output.write(piece, to: socket) {
        case .kept: scheduleFlush()
        case .written: break
        case .failed:
            leave()
            return false
        }
        return true
    }

    /// So much waits for the client that no more should be added.
    public var isFull: Bool { output.count > Self.highWater }

    /// Bytes that wait for the client.
    public var outputCount: Int { output.count }

    /// Has `outputDrained` called when there is room again. Takes the place of the handler's deadline: a client that
    /// takes nothing for the idle timeout is cut off.
    public func waitForRoom() {
        guard phase == .busy else { return }
        waitsForRoom = true
        waitForClient()
    }

    /// The answer stands in the output. Goes on with the next request, or closes behind it.
    public func finish(keepsOpen: Bool) {
        guard phase == .busy else { return }
        body.release(&input.buffer)
        phase = keepsOpen && hasRequestEnded && !server.isDraining ? .readingHead : .closing
        waitsForBody = false
        waitsForRoom = false
        head.reset()
        clearDeadline()
        scheduleFlush()
        readHeads()
    }

    /// The client has a part of an answer that will never be whole: resets the connection. `clientLeft` is not called.
    public func cut() {
        guard phase != .closed else { return }
        socket.resetOnClose()
        close()
    }

    /// A client's socket that is given away.
    public struct HandedOver {
        public let socket: StreamSocket
        /// Its end has been announced.
        public let isEnding: Bool
        /// All of it up to its end has been read.
        public let hasEnded: Bool
    }

    /// Gives the socket away, for bytes that are no HTTP. The connection stays in the server's count until `close`.
    ///
    /// - Parameter take: is given the socket, what was read behind the request's head, and what still has to be written.
    ///   If it throws, nothing is given away.
    public func handOver<Failure: Error>(
        _ take: (HandedOver, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        let client = HandedOver(socket: socket, isEnding: input.isEnding, hasEnded: input.hasEnded)
        try input.buffer.withBytes { received throws(Failure) in
            try output.buffer.withBytes { unsent throws(Failure) in try take(client, received, unsent) }
        }
        phase = .handedOver
        clearDeadline()
        input.buffer.release()
        output.release()
    }

    // MARK: Writing

    private func scheduleFlush() {
        guard !isFlushScheduled, phase != .closed else { return }
        isFlushScheduled = true
        server.loop.atTurnEnd(self)
    }

    public func turnEnded() {
        isFlushScheduled = false
        if phase != .closed, phase != .handedOver { flush() }
    }

    private func flush() {
        guard output.flush(to: socket) else { return leave() }
        outputMoved()
    }

    /// Some output went out, or could not: decides who waits for whom.
    private func outputMoved() {
        if waitsForRoom, output.count <= Self.highWater / 2 {
            waitsForRoom = false
            if deadlineKind == .clientStalled { clearDeadline() }
            handler?.outputDrained(self)
            return
        }
        guard output.isEmpty else {
            // Anything that went out counts as progress of the client.
            if phase != .busy || waitsForRoom { waitForClient() }
            return
        }
        switch phase {
        case .closing: finishClosing()
        case .readingHead:
            if deadlineKind == .clientStalled { clearDeadline() }
            // Whoever pipelines and reads without end lets the others have their turn.
            if input.isEmpty, !input.canRead { readHeads() } else { goOnNextTurn() }
        case .busy, .handedOver, .lingering, .closed: break
        }
    }

    /// Nothing goes on until the client takes some of what is there for it.
    private func waitForClient() {
        unacknowledged = socket.unacknowledged
        setDeadline(.clientStalled, after: server.settings.idleTimeout)
    }

    // MARK: Ending

    private func closeBehindOutput() {
        guard !output.isEmpty else { return close() }
        phase = .closing
        scheduleFlush()
    }

    private func finishClosing() {
        // Nothing unread: an orderly close loses nothing. Otherwise a reset could overtake the answer (RFC 9112, 9.6).
        if hasRequestEnded, input.isEmpty, !input.canRead || input.hasEnded { return close() }
        socket.shutdownWriting()
        phase = .lingering
        discarded = 0
        setDeadline(.linger, after: Self.lingerTimeout)
        discardInput()
    }

    /// Throws away what the client still sends, a part of it each turn, and not without end.
    private func discardInput() {
        input.buffer.removeAll()
        var pieces = 0
        while input.canRead, pieces < 16, discarded <= Self.maxDiscarded, phase == .closing || phase == .lingering {
            fill(limit: 64 * 1024)
            discarded += input.count
            input.buffer.removeAll()
            pieces += 1
        }
        guard phase == .closing || phase == .lingering else { return }
        if phase == .lingering, input.hasEnded || discarded > Self.maxDiscarded { return close() }
        if input.canRead, discarded <= Self.maxDiscarded { goOnNextTurn() }
    }

    /// The client is gone, or is given up.
    private func leave(_ leaving: ClientLeaving = .gone) {
        guard phase != .closed else { return }
        let (wasBusy, handler) = (phase == .busy, handler)
        // Whoever has the socket ends it.
        if phase == .handedOver { handler?.clientLeft(self, leaving) }
        close()
        if wasBusy { handler?.clientLeft(self, leaving) }
    }

    /// Ends it now: what was not sent is lost.
    public func close() {
        guard phase != .closed else { return }
        phase = .closed
        clearDeadline()
        socket.close()
        server.connectionEnded(self)
        handler = nil
    }

    /// The server stops: an idle connection closes now, a busy one after its answer.
    func drain() {
        if phase == .readingHead, input.isEmpty, output.isEmpty { close() }
    }

    /// The server has stopped waiting.
    func stop() {
        if phase == .busy { socket.resetOnClose() }
        leave(.cutOff)
    }

    /// Since when it waits for a request; `nil` when it has one, or an answer that is not out.
    var idleSince: LoopTime? {
        guard phase == .readingHead, deadlineKind == .idle, input.isEmpty, output.isEmpty else { return nil }
        return LoopTime(nanoseconds: deadline.nanoseconds &- (server.settings.idleTimeout.nanoseconds ?? 0))
    }

    // MARK: Deadlines

    /// Has `deadlinePassed` called, unless the request ends or `clearDeadline` is called before.
    public func setDeadline(after timeout: Timeout) { setDeadline(.handler, after: timeout) }

    private func setDeadline(_ kind: Deadline, after timeout: Timeout) {
        guard let nanoseconds = timeout.nanoseconds else { return clearDeadline() }
        deadlineKind = kind
        deadline = server.loop.now.advanced(by: nanoseconds)
        server.noteDeadline(deadline)
    }

    public func clearDeadline() {
        deadlineKind = .none
        deadline = LoopTime(nanoseconds: .max)
    }

    func deadlinePassed() {
        let kind = deadlineKind
        clearDeadline()
        switch kind {
        case .none: break
        case .idle, .linger: close()
        case .head:
            refuseHead(MessageError(status: 408, detail: "The head of the request did not arrive in time."))
        case .handler: handler?.deadlinePassed(self)
        // The kernel asks for more once a good part of its buffer is free: until then, a client that reads slowly is
        // told from one that does not by what the kernel holds.
        case .clientStalled:
            if socket.unacknowledged < unacknowledged { return waitForClient() }
            socket.resetOnClose()
            leave(.cutOff)
        }
    }
}
