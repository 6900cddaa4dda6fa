import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

/// One client's connection: reads requests, answers them in order, one at a time. The shell around `Exchange`; loop's
/// thread only.
final class ClientConnection: ReadinessHandler, TurnEndHandler, NextTurnHandler {
    enum Phase {
        /// Between requests, or in the middle of a head.
        case readingHead
        case awaitingToken
        case exchanging
        /// The other end of a tunnel is being connected to.
        case dialling
        /// Bytes pass both ways, and mean nothing to us.
        case tunnelling
        /// The last answer is going out.
        case closing
        /// Our side is shut down; what the client still sends is thrown away, so that no reset eats the answer.
        case lingering
        case closed
    }

    /// What happens when `deadline` passes.
    enum Deadline {
        case none, idle, head, response, upstreamIdle, requestBody, clientStalled, linger, tunnelIdle, guess
    }

    /// Output that waits for the client; past this the upstream is paused.
    static let highWater = 64 * 1024
    /// Larger pieces of a body are written from where they lie instead of being copied.
    static let copyLimit = 16 * 1024
    /// Of a request that was answered before its end, so much is read and thrown away: a program that sends all before
    /// it reads still gets the answer.
    private static let maxDiscarded = 64 << 20

    /// Holds this connection until it is closed.
    let shard: ProxyShard
    let role: ListenerRole
    let socket: StreamSocket
    /// Who called, on a Unix socket.
    let peer: PeerCredentials?
    /// Who called by TCP, for the access log.
    let address: SocketAddress?
    /// Whose request it is.
    var caller = Caller()
    /// Where a wrong password came from whose refusal waits.
    var heldGuess: String?

    var phase = Phase.readingHead
    var input = ByteBuffer()
    var output = ByteBuffer()
    private var canRead = true
    private var canWrite = true
    private var sawEnd = false
    private(set) var isPeerClosed = false
    private var isFlushScheduled = false
    private var isTurnScheduled = false
    /// What the kernel held for the client when we began to wait for it.
    var unacknowledged = 0
    var deadline = LoopTime(nanoseconds: .max)
    var deadlineKind = Deadline.none

    // The request that is being answered.
    var head = RequestHead()
    var headBytes = ByteBuffer()
    var exchange = Exchange()
    /// Of a 401 that the client sees only if no new token is to be had.
    var held: HeldAnswer?
    var upstream: Upstream?
    var destination: Upstream.Destination?
    /// The address that the program used for it.
    var asked: AskedAddress?
    var target = TargetForm.path(.empty)
    /// What Max-Forwards says from here on.
    var maxForwards: UInt64?
    /// What goes on with the upstream.
    var outbound: (any UpstreamExchange)?
    var token: AccessToken?
    var body = RequestBody()
    var isUploadWaiting = false
    /// Tells an answer to an earlier wait for a token from the current one.
    var waitNumber = 0
    /// The turn in which the request was ready to go.
    var handedOver = LoopTime(nanoseconds: 0)

    // What CONNECT asked for.
    var dialAttempt: DialAttempt?
    var tunnel: Tunnel?
    /// What an upgraded connection's client has sent.
    var switchedCount: UInt64 = 0
    /// That client has ended its side, and the upstream can't be told.
    var isLeaving = false

    // Its answer.
    var isAnswerHeadComplete = false
    var discarded = 0
    var isPaused = false
    /// The upstream waits for our next turn.
    private var isYielding = false
    private var share = TurnShare()

    // For the log.
    /// Why we answered ourselves.
    var refusal: String?
    /// What is wrong with the request, where it can't be understood.
    var malformation: String?
    /// Its number on this loop, where the program gave it no name.
    var requestNumber: UInt64?
    var started = LoopTime(nanoseconds: 0)
    /// It was handed on to its destination.
    var isSent = false
    var status = 0
    var wasCut = false
    var bytesSent: UInt64 = 0
    /// What became of its token, where its upstream has a client.
    var injection: InjectionResult?

    init(_ socket: StreamSocket, role: ListenerRole, shard: ProxyShard) {
        self.socket = socket
        self.role = role
        self.shard = shard
        peer = socket.peerCredentials
        address = shard.observer.accessLog == nil || peer != nil ? nil : socket.peerAddress
        caller.uid = peer?.user
        if case .forward(let listener) = role { caller.listener = listener }
        setDeadline(.idle, after: shard.idleTimeout)
    }

    // MARK: Readiness

    func ready(_ readiness: Readiness) {
        guard phase != .closed else { return }
        if let tunnel { return tunnel.clientReady(readiness) }
        // Both sides have ended: what the client has sent is still read, so that no reset eats the last answer.
        let isOrderly = phase == .lingering && !readiness.contains(.error)
        if readiness.contains(.failed), !isOrderly { return hangUp() }
        if readiness.contains(.writable), !canWrite {
            canWrite = true
            if !output.isEmpty { flush() }
        }
        guard !readiness.isDisjoint(with: [.readable, .peerClosed]) else { return }
        canRead = true
        if readiness.contains(.peerClosed), !isPeerClosed {
            // It has sent all it wanted to, and may still read. If it is gone, what we write next comes back as a reset;
            // while there is nothing to write, the kernel asks.
            isPeerClosed = true
            socket.probePeer()
        }
        switch phase {
        case .readingHead:
            readHead()
        case .awaitingToken, .exchanging:
            if !exchange.isRequestComplete {
                if isUploadWaiting {
                    isUploadWaiting = false
                    outbound?.resumeUpload()
                }
            }
        case .closing, .lingering: discardInput()
        // Whoever has sent all there is may still want an answer.
        case .dialling, .tunnelling, .closed: break
        }
    }

    /// Reads and parses until a request is under way or nothing more is there.
    func readHead() {
        while phase == .readingHead {
            let limit = shard.settings.maxHeaderBytes
            if canRead, input.count <= limit { fill(limit: 16 * 1024) }
            guard phase == .readingHead else { return }
            guard parseHead() else { return }
        }
    }

    /// - Returns: whether it is worth looking again.
    private func parseHead() -> Bool {
        // A client that pipelines without reading waits until its answers are out.
        guard output.count <= Self.highWater else { return false }
        if input.isEmpty {
            if sawEnd || shard.isDraining { closeBehindOutput() } else { waitForRequest() }
            return false
        }
        let parsed: RequestHead.Status
        do throws(MessageError) {
            parsed = try head.parse(
                input.bytes, limits: HeadLimits(maxBytes: shard.settings.maxHeaderBytes, maxFields: 256))
        } catch {
            startRequest(length: 0)
            keepWhatWasRead()
            fail(Problem(error))
            return false
        }
        guard case .complete(let length) = parsed else {
            if sawEnd {
                closeBehindOutput()
            } else if deadlineKind != .head {
                setDeadline(.head, after: shard.headerTimeout)
            }
            return canRead && !sawEnd
        }
        startRequest(length: length)
        beginRequest()
        return true
    }

    private func waitForRequest() {
        if deadlineKind != .idle { setDeadline(.idle, after: shard.idleTimeout) }
        if input.capacity > Self.highWater { input.release() }
        if output.isEmpty, output.capacity > Self.highWater { output.release() }
    }

    /// Takes the head off the input and clears what the last request left.
    func startRequest(length: Int) {
        headBytes.removeAll()
        headBytes.append(input.bytes.extracting(0..<length))
        input.consume(length)
        exchange = Exchange()
        upstream = nil
        destination = nil
        asked = nil
        maxForwards = nil
        target = .path(.empty)
        token = nil
        body = RequestBody()
        isUploadWaiting = false
        isAnswerHeadComplete = false
        held = nil
        isPaused = false
        isYielding = false
        started = shard.loop.now
        isSent = false
        status = 0
        refusal = nil
        malformation = nil
        requestNumber = nil
        bytesSent = 0
        switchedCount = 0
        isLeaving = false
        injection = nil
        clearDeadline()
        shard.requestStarted()
    }

    /// Of a head that never became whole: what it says so far is for the log.
    func keepWhatWasRead() {
        let length = min(input.count, shard.settings.maxHeaderBytes)
        input.withBytes { headBytes.append($0.extracting(first: length)) }
    }

    /// One read; notes whether another is worth it.
    func fill(limit: Int) {
        switch socket.read(into: &input, limit: limit) {
        // Less than asked for: the kernel's buffer is empty, and its next byte is a new edge (epoll(7)).
        case .bytes(let count): canRead = count == limit || isPeerClosed
        case .wouldBlock: canRead = false
        case .endOfStream:
            canRead = false
            sawEnd = true
        case .failed: hangUp()
        }
    }

    var mayRead: Bool { canRead }
    var hasEnded: Bool { sawEnd }

    /// Throws away what the client still sends, a part of it each turn, and not without end.
    func discardInput() {
        input.removeAll()
        var pieces = 0
        while canRead, pieces < 16, discarded <= Self.maxDiscarded, phase == .closing || phase == .lingering {
            fill(limit: 64 * 1024)
            discarded += input.count
            input.removeAll()
            pieces += 1
        }
        guard phase == .closing || phase == .lingering else { return }
        if phase == .lingering, sawEnd || discarded > Self.maxDiscarded { return close() }
        if canRead, discarded <= Self.maxDiscarded { goOnNextTurn() }
    }

    private func goOnNextTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        shard.loop.atNextTurn(self)
    }

    func nextTurn() {
        isTurnScheduled = false
        switch phase {
        case .readingHead: readHead()
        case .closing, .lingering: discardInput()
        case .exchanging:
            guard isYielding else { return }
            isYielding = false
            outbound?.resumeBody()
        case .awaitingToken, .dialling, .tunnelling, .closed: break
        }
    }

    /// Whether another piece of an answer may be handled in this turn.
    var hasShareLeft: Bool { share.takesMore(in: shard.loop) }

    /// Goes on with the answer when others have had their turn.
    func waitForTurn() -> BodyStep {
        isYielding = true
        goOnNextTurn()
        return .pause
    }

    // MARK: Writing

    /// Has what stands in `output` written at the end of this turn, in one piece.
    func scheduleFlush() {
        guard !isFlushScheduled, phase != .closed else { return }
        isFlushScheduled = true
        shard.loop.atTurnEnd(self)
    }

    func turnEnded() {
        isFlushScheduled = false
        if phase != .closed { flush() }
    }

    private func flush() {
        while canWrite, !output.isEmpty {
            switch socket.write(from: &output) {
            case .bytes: continue
            case .wouldBlock: canWrite = false
            case .endOfStream, .failed: return hangUp()
            }
        }
        outputMoved()
    }

    /// Writes `output` and `body` without copying what the kernel takes at once.
    func write(body: Span<UInt8>) {
        guard canWrite, body.count > Self.copyLimit else {
            output.append(body)
            return scheduleFlush()
        }
        let before = output.count
        switch socket.write(from: &output, then: body) {
        case .bytes(let count):
            let taken = max(0, count - before)
            if taken < body.count {
                output.append(body.extracting(taken...))
                // A short write: the kernel's buffer is full, and room in it is a new edge.
                canWrite = false
            }
        case .wouldBlock:
            canWrite = false
            output.append(body)
        case .endOfStream, .failed: hangUp()
        }
    }

    /// Some output went out, or could not: decides who waits for whom.
    private func outputMoved() {
        if isPaused, output.count <= Self.highWater / 2 {
            isPaused = false
            if deadlineKind == .clientStalled { clearDeadline() }
            outbound?.resumeBody()
            return
        }
        guard output.isEmpty else {
            // Anything that went out counts as progress of the client.
            if phase == .closing || isPaused || phase == .readingHead {
                waitForClient()
            }
            return
        }
        switch phase {
        case .closing: finishClosing()
        case .readingHead:
            if deadlineKind == .clientStalled { clearDeadline() }
            // Whoever pipelines and reads without end lets the others have their turn.
            if input.isEmpty, !canRead { readHead() } else { goOnNextTurn() }
        default: break
        }
    }

    /// Nothing goes on until the client takes some of what is there for it.
    func waitForClient() {
        unacknowledged = socket.unacknowledged
        setDeadline(.clientStalled, after: shard.idleTimeout)
    }
}
