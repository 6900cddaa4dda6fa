import Glibc
import HTTP2
import HTTPMessage
import Reactor

/// One request of a program over HTTP/2, and its answer. Loop's thread only.
final class HTTP2ProgramStream: ProgramStream {
    enum Phase {
        case busy
        /// The answer is complete. Some of it may still be unsent.
        case finished
        case closed
    }

    let id: Int32
    let connection: HTTP2ServerConnection
    let server: ServerLoop
    let source: ProgramSource
    let request = ReceivedRequest()
    private(set) var handler: (any ProgramStreamHandler)?
    private(set) var phase = Phase.busy
    var body = HTTP2RequestBody()
    var waits = StreamWaits()
    private(set) var deadline = ConnectionDeadline.off
    /// Unsent head of the final answer. It waits for the first piece of the body, or for the turn's end.
    private var head: HTTP2FieldList?
    /// Number of unsent bytes when the wait for the program began.
    var unsentAtWait = 0
    /// The stream's part of the connection's allowance.
    var share = HTTP2Allowance.Share()
    /// Whether the request can't go on if its body is not kept.
    var needsBody = false

    init(_ id: Int32, of connection: HTTP2ServerConnection, server: ServerLoop, source: ProgramSource) {
        self.id = id
        self.connection = connection
        self.server = server
        self.source = source
    }

    var session: HTTP2Session { connection.session }

    // MARK: Events of the connection

    /// Begins the request.
    func begin(
        _ list: borrowing HTTP2FieldList, _ block: HTTP2Block, isSecure: Bool, isBodiless: Bool,
        for handler: any ProgramStreamHandler
    ) {
        self.handler = handler
        do throws(MessageError) {
            guard !block.isTooLarge else {
                throw MessageError(status: 431, detail: "The head of the request is too large.")
            }
            let head = try HTTP2RequestHead(list, block.fields)
            try head.write(to: &request.content.bytes, isSecure: isSecure, isBodiless: isBodiless)
            charge { $0.head = block.size }
            guard case .complete = try request.content.parse(server.settings.headLimits) else {
                throw MessageError(detail: "The head of the request is incomplete.")
            }
            request.content.head.version = .http2
        } catch {
            request.content.head.version = .http2
            return handler.requestRefused(error)
        }
        handler.requestBegan()
    }

    func received(_ piece: Span<UInt8>) {
        guard phase == .busy else { return }
        body.append(piece, server.spares)
        tellBody()
    }

    func received(trailers: [(name: [UInt8], value: [UInt8])]) { request.trailers = trailers }

    func requestEnded() {
        body.hasEnded = true
        if phase == .busy { tellBody() }
    }

    private func tellBody() {
        guard waits.forBody else { return }
        waits.forBody = false
        handler?.bodyArrived()
    }

    func roomCame() {
        guard phase == .busy, waits.forRoom else { return }
        waits.forRoom = false
        if deadline.kind == .room { deadline = .off }
        handler?.roomCame()
    }

    func deadlinePassed() {
        let kind = deadline.kind
        deadline = .off
        if kind == .handler {
            handler?.deadlinePassed()
        } else if kind == .room {
            // With nothing unsent, the stream waits for the socket, which has a deadline itself.
            if unsentAtWait == 0 || session.unsent(of: id) < unsentAtWait { return waitForProgram() }
            session.reset(id, .cancel)
            connection.scheduleFlush()
            leave(.stalled)
        }
    }

    /// Ends the stream of a program that left, reset the stream or was cut off, and tells the handler.
    func leave(_ leaving: ProgramLeaving) {
        let handler = handler
        guard end() else { return }
        handler?.programLeft(leaving)
        request.release()
    }

    func end() -> Bool {
        guard phase == .busy else { return false }
        phase = .closed
        release()
        return true
    }

    private func release() {
        handler = nil
        head = nil
        deadline = .off
        body.release()
        session.forfeit(id)
        charge { $0 = HTTP2Allowance.Share() }
    }

    // MARK: The request

    var progress: StreamProgress {
        StreamProgress(
            bodyTaken: body.taken, isRequestComplete: body.isComplete, canRewind: !body.isSpent, hasProgramEnded: false,
            isOutputSent: head == nil && session.unsent(of: id) == 0, mustClose: server.isEnding(source.listener))
    }

    func readBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyReading {
        guard phase == .busy else { return .gone }
        waits.forBody = false
        let (count, new) = body.take(into: &room, server.spares)
        if count > 0 {
            if new > 0 {
                session.consume(id, new)
                connection.scheduleFlush()
                guard chargeBody() else { return .gone }
            }
            return .bytes(count)
        }
        if body.hasEnded { return .end }
        waits.forBody = true
        return .wait
    }

    func rewindBody() -> Bool { body.rewind() }

    func hasInput(reading: Bool) -> Bool? { phase == .busy ? false : nil }

    /// Bytes after the head exist only with CONNECT.
    func peek(until isEnough: (Span<UInt8>) -> Bool) -> Peeked { phase == .busy ? .end : .gone }

    func replaceRequest(by head: Span<UInt8>) throws(MessageError) {
        throw MessageError(status: 501, detail: "A stream of HTTP/2 has one request.")
    }

    // MARK: The answer

    @discardableResult
    func answer(_ head: AnswerHead, reason: Span<UInt8>, fields: (inout ByteBuffer) -> Void) -> Int {
        guard phase == .busy else { return 0 }
        var list = HTTP2FieldList()
        list.append(":status", Array("\(head.status)".utf8).span)
        var count = 0
        list.append(lines: { output in
            let before = output.count
            if head.isOwn { server.date.append(to: &output) }
            fields(&output)
            count = output.count - before
        })
        if head.status < 200 {
            connection.attempt { session throws(HTTP2Error) in try session.interim(id, list) }
        } else {
            // An answer that has begun is not replaced by another.
            if share.kept > 0 { stopKeeping() }
            self.head = consume list
            connection.awaitBody(of: self)
        }
        connection.scheduleFlush()
        return count
    }

    /// Sends the answer's head, with END_STREAM if there is no body.
    func sendHead(hasBody: Bool) {
        guard phase != .closed, let list = head.take() else { return }
        connection.attempt { session throws(HTTP2Error) in try session.answer(id, list, hasBody: hasBody) }
    }

    func write(_ piece: Span<UInt8>, _ taking: PieceTaking) -> Int? {
        guard phase == .busy else { return nil }
        sendHead(hasBody: true)
        if share.behind > 0 { charge { $0.behind = 0 } }
        var room = Int.max
        if taking == .part { room = connection.room(for: self) }
        let isFull = session.unsent(of: id) > ServerConnection.highWater
        let count = session.write(
            piece.extracting(first: room), to: id,
            takesAll: taking == .all || taking == .allOrNone && !isFull)
        connection.scheduleFlush()
        if count < piece.count {
            charge { $0.behind = piece.count - count }
            waitForRoom(count == min(room, piece.count))
        }
        return count
    }

    func endOutput() {
        guard phase == .busy else { return }
        sendHead(hasBody: true)
        session.end(id)
        connection.scheduleFlush()
    }

    func finish(trailers: [(name: [UInt8], value: [UInt8])], keepsOpen: Bool) {
        guard phase == .busy else { return }
        let isBodiless = head != nil && trailers.isEmpty
        sendHead(hasBody: !isBodiless)
        phase = .finished
        release()
        request.release()
        if !trailers.isEmpty {
            var list = HTTP2FieldList()
            for (name, value) in trailers { list.append(name.span, value.span) }
            session.end(id, trailers: list)
        } else if !isBodiless {
            session.end(id)
        }
        if session.unsent(of: id) > 0 { waitForProgram() }
        if !keepsOpen { connection.drain() }
        connection.scheduleFlush()
    }

    func close(cut: Bool, code: HTTP2Code?) {
        // With NO_ERROR, a truncated answer would look complete.
        let code = (code == .noError ? nil : code) ?? (cut ? .internalError : .cancel)
        if cut {
            guard phase == .busy else { return }
            // The program gets the bytes that came.
            sendHead(hasBody: true)
            phase = .finished
            release()
            session.cut(id, code)
            if session.unsent(of: id) > 0 { waitForProgram() }
        } else {
            guard end() else { return }
            session.reset(id, code)
        }
        request.release()
        connection.scheduleFlush()
    }

    func closeConnection() {
        guard end() else { return }
        connection.hangUp()
    }

    // MARK: The stream

    func setDeadline(after timeout: Timeout) { if phase == .busy { setDeadline(.handler, after: timeout) } }

    func setDeadline(_ kind: ConnectionDeadline.Kind, after timeout: Timeout) {
        deadline = ConnectionDeadline(kind, after: timeout, since: server.loop.now)
        connection.noteDeadline(deadline.time)
    }

    func wrapStream(_ make: (any ByteStream, consuming ByteBuffer) -> (any ByteStream)?) -> Bool { false }

    func handOver(
        _ take: (HandedOverStream, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError) {
        throw SystemError("hand over a stream of HTTP/2", code: EOPNOTSUPP)
    }
}
