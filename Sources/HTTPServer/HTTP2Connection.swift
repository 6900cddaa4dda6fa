import HTTP2
import HTTPMessage
import Reactor
import WireText

/// The HTTP/2 on one client's connection (RFC 9113): many requests at a time, each a `HTTP2ClientStream`. It takes the place of
/// the connection's handler, which makes those of the streams. Loop's thread only.
final class HTTP2Connection: ClientStreamHandler, NextTurnHandler, TurnEndHandler {
    /// Time of one turn for this connection's requests. Other connections then have theirs.
    private static let share: UInt64 = 2_000_000
    /// Bytes of one read.
    private static let batch = 16 * 1024
    /// Streams kept for later requests.
    private static let maxSpares = 8
    /// Start of the connection preface (section 3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    let owner: ServerConnection
    let session: HTTP2Session
    private let makeHandler: (any ClientStream) -> any ClientStreamHandler
    var streams: [Int32: HTTP2ClientStream] = [:]
    private var spares: [HTTP2ClientStream] = []
    /// Streams whose answer's head waits for the end of the turn.
    private var answered: [HTTP2ClientStream] = []
    private var schedule = ServerConnection.Schedule()
    var isDraining = false
    private var hasFailed = false
    /// The client takes none of the connection's output: when it is cut off, and the bytes that it had not acknowledged.
    var stall: (deadline: LoopTime, unacknowledged: Int)?
    /// Time at which the last stream ended.
    var quietSince: LoopTime

    /// Whether the client's first bytes are those of HTTP/2, as far as they came.
    static func begins(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= 4 else { return false }
        for index in 0..<min(bytes.count, preface.count) where bytes[index] != preface[index] { return false }
        return true
    }

    /// - Parameter makeHandler: makes the handler of each stream.
    init(
        _ owner: ServerConnection, makeHandler: @escaping (any ClientStream) -> any ClientStreamHandler
    ) throws(HTTP2Error) {
        self.owner = owner
        self.makeHandler = makeHandler
        quietSince = owner.now
        var settings = HTTP2Settings()
        settings.maxHeaderListBytes = owner.server.settings.maxHeaderBytes
        settings.maxFields = owner.server.settings.maxFields
        session = try HTTP2Session(.server, settings, spares: owner.server.spares, at: owner.now)
    }

    /// Begins with the bytes that have been read.
    func begin() {
        becomeQuiet()
        if owner.server.isEnding(owner.listener) { drain() }
        receive()
        work()
    }

    // MARK: Input

    func ready(_ readiness: Readiness) {
        if readiness.contains(.failed) { return owner.leave() }
        if owner.output.note(readiness) { scheduleFlush() }
        guard !readiness.isDisjoint(with: [.readable, .peerClosed]) else { return }
        _ = owner.reader.input.note(readiness)
        work()
    }

    func nextTurn() {
        schedule.goesOn = false
        guard owner.phase == .http2 else { return }
        work()
    }

    private func goOnNextTurn() {
        guard !schedule.goesOn else { return }
        schedule.goesOn = true
        owner.server.loop.atNextTurn(self)
    }

    /// Handles what has come, within the share of the turn.
    private func work() {
        let start = LoopTime.current()
        while owner.phase == .http2 {
            guard handleEvents(since: start) else { return goOnNextTurn() }
            owner.reader.input.buffer.removeAll()
            guard !hasFailed, owner.phase == .http2 else { break }
            // A client that does not read is not read from.
            guard owner.reader.input.canRead, owner.output.count <= ServerConnection.highWater else { break }
            guard owner.reader.input.fill(from: owner.stream, limit: Self.batch) else { return owner.leave() }
            if owner.reader.input.hasEnded { return owner.leave() }
            guard !owner.reader.input.isEmpty else { break }
            receive()
        }
        guard owner.phase == .http2 else { return }
        owner.reader.input.settle()
        scheduleFlush()
    }

    /// - Returns: `false` when the share of the turn is spent.
    private func handleEvents(since start: LoopTime) -> Bool {
        var count = 0
        while let event = session.next() {
            handle(event)
            count += 1
            if count % 8 == 0, LoopTime.current().nanoseconds &- start.nanoseconds > Self.share { return false }
        }
        return true
    }

    private func receive() {
        do throws(HTTP2Error) {
            try owner.reader.input.buffer.withBytes { bytes throws(HTTP2Error) in
                try session.receive(bytes, at: owner.now)
            }
        } catch {
            hasFailed = true
        }
        scheduleFlush()
    }

    private func handle(_ event: HTTP2Event) {
        switch event {
        case .head(let id, let block): begin(id, block)
        case .trailers(let id, let block): takeTrailers(id, block)
        case .data(let id, let range):
            guard let stream = streams[id] else { return session.consume(id, range.count) }
            owner.reader.input.buffer.withBytes { stream.take($0.extracting(range)) }
        case .ended(let id): streams[id]?.end()
        case .room(let id): streams[id]?.roomCame()
        case .closed(let id, _): streamClosed(id)
        case .pong: lastGoAway()
        case .interim, .sent, .goAway, .settings: break
        }
    }

    private func begin(_ id: Int32, _ block: HTTP2Block) {
        let stream = spares.popLast() ?? HTTP2ClientStream(self)
        if stream.handler == nil { stream.handler = makeHandler(stream) }
        streams[id] = stream
        stream.begin(id)
        do throws(MessageError) {
            try stream.takeHead(block)
            stream.handler?.requestBegan()
        } catch {
            stream.handler?.requestRefused(error)
        }
    }

    private func takeTrailers(_ id: Int32, _ block: HTTP2Block) {
        guard let stream = streams[id] else { return }
        // Read as those of HTTP/1.1 are.
        var section = ByteBuffer()
        section.append("0\r\n")
        session.received.forEach(block.fields) { section.append(field: $0, $1) }
        section.append("\r\n")
        var decoder = ChunkedDecoder()
        guard !block.isTooLarge, case .end? = try? decoder.next(section.bytes, from: 0) else {
            session.reset(id, .protocolError)
            return stream.leave(.gone)
        }
        stream.take(trailers: decoder.trailers)
    }

    private func streamClosed(_ id: Int32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        stream.leave(.gone)
        if spares.count < Self.maxSpares { spares.append(stream) } else { stream.handler = nil }
        if streams.isEmpty { becomeQuiet() }
    }

    // MARK: For the streams

    /// Opens the client's window again.
    func consume(_ id: Int32, _ count: Int) {
        session.consume(id, count)
        scheduleFlush()
    }

    /// Calls the session. It fails for lack of memory only, and the connection ends then.
    func perform(_ call: (HTTP2Session) throws(HTTP2Error) -> Void) {
        do throws(HTTP2Error) { try call(session) } catch { hasFailed = true }
        scheduleFlush()
    }

    /// The stream's head goes out at the end of the turn, unless its body or its end comes before.
    func note(_ stream: HTTP2ClientStream) {
        answered.append(stream)
        scheduleFlush()
    }

    func streamFinished() {
        if owner.server.isEnding(owner.listener) { drain() }
        scheduleFlush()
    }

    func scheduleFlush() {
        guard !schedule.flushes, owner.phase == .http2 else { return }
        schedule.flushes = true
        owner.server.loop.atTurnEnd(self)
    }

    // MARK: Output

    func turnEnded() {
        schedule.flushes = false
        guard owner.phase == .http2 else { return }
        while let stream = answered.popLast() { stream.sendHead() }
        guard send() else { return owner.leave() }
        // Room for more, and ended streams. Events that the last turn left come first.
        if !handleEvents(since: .current()) { goOnNextTurn() }
        guard owner.phase == .http2 else { return }
        if hasFailed || session.isFinished { return end() }
        noteStall()
        // A client that reads as fast as it is sent to has one share in each turn. Input may have waited for the output.
        if owner.output.isEmpty, session.wantsWrite || owner.reader.input.canRead { goOnNextTurn() }
    }

    /// - Returns: `false` when the connection has failed.
    private func send() -> Bool {
        var isWhole = true
        if owner.output.count <= ServerConnection.highWater {
            owner.output.append { output in
                do throws(HTTP2Error) { try session.fill(&output, limit: ServerConnection.highWater) } catch {
                    isWhole = false
                }
            }
        }
        if !isWhole { hasFailed = true }
        return owner.output.flush(to: owner.stream) != nil
    }

    /// Ends the connection behind its output.
    private func end() {
        leaveStreams(.gone)
        owner.closeBehindHTTP2()
    }

    private func leaveStreams(_ leaving: ClientLeaving) {
        let all = streams
        streams = [:]
        for stream in all.values {
            stream.leave(leaving)
            stream.handler = nil
        }
        for stream in spares { stream.handler = nil }
        spares = []
        answered = []
    }

    func clientLeft(_ leaving: ClientLeaving) { leaveStreams(leaving) }

    // MARK: Not of HTTP/2

    func requestBegan() {}
    func requestRefused(_ error: MessageError) {}
    func bodyArrived() {}
    func roomCame() {}
}
