import HTTP2
import HTTPMessage
import Reactor

/// One request of an HTTP/2 connection, and its answer. Used again for a later one, with its handler. Loop's thread only.
final class HTTP2ClientStream: ClientStream {
    enum Phase {
        /// No request, or none any more.
        case idle
        /// The handler has a request to answer.
        case busy
        /// The answer is finished. Some of it may wait for the client.
        case finished
    }

    let connection: HTTP2Connection
    private(set) var id: Int32 = 0
    var phase = Phase.idle
    var handler: (any ClientStreamHandler)?
    let request = ReceivedRequest()
    /// Bytes of the request's body, in front of them those that are kept.
    private var input = ByteBuffer()
    private var body = RequestBody()
    /// Bytes of the body that the client may send again as room: those read for the first time.
    private var consumed: UInt64 = 0
    private var hasEnded = false
    private var waits = ServerConnection.Waits()
    /// Head of the answer. It waits for the first bytes of the body or the end, which may go with it.
    private var head = HTTP2FieldList()
    /// A final answer's head was written.
    private var isAnswered = false
    private(set) var deadline = ConnectionDeadline.off
    /// Bytes that waited for the client when its deadline was set.
    private var unsent = 0

    init(_ connection: HTTP2Connection) { self.connection = connection }

    var source: ClientSource { connection.owner.source }
    private var session: HTTP2Session { connection.session }

    // MARK: The request

    func begin(_ id: Int32) {
        self.id = id
        phase = .busy
        request.content.head.reset()
        request.content.bytes.removeAll()
        request.trailers = []
        input.removeAll()
        body.begin(.untilClose)
        (consumed, hasEnded, waits, deadline) = (0, false, ServerConnection.Waits(), .off)
        isAnswered = false
        head.removeAll()
    }

    /// Reads the head.
    func takeHead(_ block: HTTP2Block) throws(MessageError) {
        let settings = connection.owner.server.settings
        hasEnded = block.isLast
        let count = try HTTP2RequestText.write(
            block, of: session, hasBody: !block.isLast, to: &request.content.bytes)
        try parse(HeadLimits(maxBytes: settings.maxHeaderBytes, maxFields: settings.maxFields + 2), count)
    }

    private func parse(_ limits: HeadLimits, _ count: Int) throws(MessageError) {
        let status = try Self.parse(&request.content.head, request.content.bytes, limits)
        guard case .complete(let length) = status, length == request.content.bytes.count,
            request.content.head.fields.count == count
        else { throw MessageError(status: 400, detail: "The head is not one of HTTP/2.") }
        request.content.head.noteHTTP2()
    }

    private static func parse(
        _ head: inout RequestHead, _ bytes: borrowing ByteBuffer, _ limits: HeadLimits
    ) throws(MessageError) -> RequestHead.Status {
        try head.parse(bytes.bytes, limits: limits)
    }

    func take(_ piece: Span<UInt8>) {
        guard phase == .busy else { return connection.consume(id, piece.count) }
        input.append(piece)
        tellBody()
    }

    func take(trailers: [(name: [UInt8], value: [UInt8])]) { request.trailers = trailers }

    func end() {
        hasEnded = true
        tellBody()
    }

    private func tellBody() {
        guard waits.forBody else { return }
        waits.forBody = false
        handler?.bodyArrived()
    }

    var progress: StreamProgress {
        StreamProgress(
            bodyTaken: body.taken, isRequestComplete: hasEnded && input.count == body.offset,
            canRewind: !body.isSpent, hasClientEnded: false, isOutputTaken: session.unsent(of: id) == 0,
            mustClose: false)
    }

    func readBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyReading {
        guard phase == .busy else { return .gone }
        waits.forBody = false
        let count = try body.take(from: &input, into: &room)
        if body.taken > consumed {
            connection.consume(id, Int(body.taken - consumed))
            consumed = body.taken
        }
        if count > 0 { return .bytes(count) }
        if hasEnded { return .end }
        waits.forBody = true
        return .wait
    }

    func keepBody(upTo limit: Int) { body.keep(upTo: limit) }

    func rewindBody() -> Bool { body.rewind() }

    // MARK: Not of HTTP/2

    /// Nothing comes behind a request on its stream.
    func hasInput(reading: Bool) -> Bool? { phase == .busy ? false : nil }

    func peek(until isEnough: (Span<UInt8>) -> Bool) -> Peeked { phase == .busy ? .end : .gone }

    func replaceRequest(by head: Span<UInt8>) throws(MessageError) {
        throw MessageError(status: 400, detail: "A stream of HTTP/2 has one request.")
    }

    func layStream(_ make: (any ByteStream, consuming ByteBuffer) -> (any ByteStream)?) -> Bool { false }

    func handOver(
        _ take: (HandedOver, _ input: Span<UInt8>, _ output: Span<UInt8>) throws(SystemError) -> Void
    ) throws(SystemError) {
        throw SystemError("handing over a stream of HTTP/2", code: 95)
    }

    // MARK: The answer

    @discardableResult
    func answer(_ head: AnswerHead, reason: Span<UInt8>, fields: (inout ByteBuffer) -> Void) -> Int {
        guard phase == .busy else { return 0 }
        self.head.removeAll()
        let status = String(head.status)
        self.head.append(":status", Array(status.utf8).span)
        let server = connection.owner.server
        self.head.append { output in
            if head.isOwn { server.date.append(to: &output) }
            fields(&output)
        }
        let count = self.head.byteCount
        if head.status < 200 {
            connection.perform { session throws(HTTP2Error) in try session.interim(id, self.head) }
            self.head.removeAll()
        } else {
            isAnswered = true
            connection.note(self)
        }
        return count
    }

    /// Sends the head that waits, without the end.
    func sendHead() {
        guard head.count > 0 else { return }
        connection.perform { session throws(HTTP2Error) in try session.answer(id, head, hasBody: true) }
        head.removeAll()
    }

    func write(_ piece: Span<UInt8>, _ taking: PieceTaking) -> Int? {
        guard phase == .busy else { return nil }
        sendHead()
        let isFull = session.unsent(of: id) >= ServerConnection.highWater
        let takesAll = taking == .all || taking == .allOrNone && !isFull
        let count = session.write(piece, to: id, takesAll: takesAll)
        connection.scheduleFlush()
        if count < piece.count { waitForRoom() }
        return count
    }

    private func waitForRoom() {
        waits.forRoom = true
        waitForClient()
    }

    /// The client has taken some of what waited.
    func roomCame() {
        guard phase == .busy, waits.forRoom else { return }
        waits.forRoom = false
        if deadline.kind == .room { deadline = .off }
        handler?.roomCame()
    }

    func endOutput() { session.end(id) }

    func finish(trailers: [(name: [UInt8], value: [UInt8])], keepsOpen: Bool) {
        guard phase == .busy else { return }
        guard isAnswered else { return reset(.cancel) }
        if head.count > 0, trailers.isEmpty {
            connection.perform { session throws(HTTP2Error) in try session.answer(id, head, hasBody: false) }
            head.removeAll()
        } else {
            sendHead()
            var list = HTTP2FieldList()
            for (name, value) in trailers { list.append(name.span, value.span) }
            session.end(id, trailers: list)
        }
        settle()
        if session.unsent(of: id) > 0 { waitForClient() }
        connection.streamFinished()
    }

    func close(cut: Bool) {
        guard phase == .busy else { return }
        reset(cut ? .internalError : .cancel)
    }

    private func reset(_ code: HTTP2Code) {
        session.reset(id, code)
        settle()
        connection.streamFinished()
    }

    /// The request is over for the handler.
    private func settle() {
        phase = .finished
        waits = ServerConnection.Waits()
        deadline = .off
        body.release(&input)
        input.release()
    }

    /// The stream is gone, before its answer was finished or behind it.
    func leave(_ leaving: ClientLeaving) {
        let wasBusy = phase == .busy
        settle()
        if wasBusy { handler?.clientLeft(leaving) }
        phase = .idle
    }

    // MARK: Deadlines

    func setDeadline(after timeout: Timeout) { setDeadline(.handler, after: timeout) }

    private func setDeadline(_ kind: ConnectionDeadline.Kind, after timeout: Timeout) {
        guard let nanoseconds = timeout.nanoseconds else {
            deadline = .off
            return
        }
        let now = connection.owner.now
        deadline = ConnectionDeadline(kind, at: now.advanced(by: nanoseconds), since: now)
        connection.noteDeadline(deadline.time)
    }

    private func waitForClient() {
        unsent = session.unsent(of: id)
        let settings = connection.owner.server.settings
        setDeadline(.room, after: settings.stallTimeout ?? settings.idleTimeout)
    }

    func deadlinePassed() {
        let kind = deadline.kind
        deadline = .off
        guard kind == .room else {
            if phase == .busy { handler?.deadlinePassed() }
            return
        }
        if session.unsent(of: id) < unsent { return waitForClient() }
        let wasBusy = phase == .busy
        reset(.cancel)
        if wasBusy { handler?.clientLeft(.cutOff) }
    }
}
