import HTTPMessage
import Reactor
import WireText

/// Answers requests with an `async` function: reads each whole request, runs the function in a task, and sends the
/// result. Loop's thread only.
///
/// If the program leaves, the task is cancelled. The next piece of an answer is written, or requested from a stream,
/// once the program has taken most of the previous piece.
public final class AsyncExchange: ProgramStreamHandler, NextTurnHandler {
    /// Limit of body bytes read in one turn, so that a fast program does not occupy the loop.
    private static let share = 256 * 1024
    /// Size of the pieces in which an answer is written.
    private static let piece = 64 * 1024

    public typealias Handler = @Sendable (ServerRequest) async -> ServerResponse

    private enum State {
        case idle
        /// A pipelined request waits, so that other connections get their turn first.
        case pausing(ServerRequest)
        case gathering(ServerRequest)
        /// `number` identifies the request. A late answer to an earlier request is dropped.
        case answering(number: UInt64, task: Task<Void, Never>)
        case streaming(number: UInt64, task: Task<Void, Never>)
        case writing([UInt8], sent: Int)
    }

    private let respond: Handler
    private let maxBodyBytes: Int?
    private var state = State.idle
    private var number: UInt64 = 0
    private var requestWasHead = false
    private var isHTTP10 = false
    private var keepsOpen = false
    /// Whether bytes of the current request arrived before the previous answer was complete.
    private var isPipelined = false
    private var began = LoopTime(nanoseconds: 0)
    private var body: [UInt8] = []
    private var bodyLength = 0
    private var roomWaiter: CheckedContinuation<Bool, Never>?
    private unowned let connection: ServerConnection

    /// - Parameter maxBodyBytes: limit of a body; a longer one gets 413. `nil`: bodies of any size are read and
    ///   counted, but not kept.
    public init(_ connection: ServerConnection, maxBodyBytes: Int?, respond: @escaping Handler) {
        self.connection = connection
        self.maxBodyBytes = maxBodyBytes
        self.respond = respond
    }

    public var awaitsRequest: Bool {
        switch state {
        case .pausing, .gathering: true
        case .idle, .answering, .streaming, .writing: false
        }
    }

    // MARK: The request

    public func requestBegan() {
        let head = connection.request.head
        requestWasHead = head.methodKind == .head
        isHTTP10 = head.version == .http10
        keepsOpen = head.keepAlive && !head.upgradeRequested
        body = []
        bodyLength = 0
        began = connection.takeHeadBegan() ?? connection.now
        do throws(MessageError) {
            try checkSizes(head)
            let request = try ServerRequest(connection)
            if case .length(let length) = head.framing, let maxBodyBytes, length > UInt64(maxBodyBytes) {
                throw Self.tooLarge
            }
            if head.expectsContinue { connection.answer(AnswerHead(100), reason: Array("Continue".utf8).span) { _ in } }
            if isPipelined, let pause = connection.server.settings.pipelinePause {
                state = .pausing(request)
                connection.setDeadline(after: pause)
            } else {
                state = .gathering(request)
                try gather()
            }
        } catch {
            refuse(error)
        }
    }

    private func checkSizes(_ head: RequestHead) throws(MessageError) {
        let settings = connection.server.settings
        let limit = settings.maxFieldBytes
        guard head.target.count <= limit else {
            throw MessageError(status: 414, detail: "The request target is too long.")
        }
        for field in head.fields where field.name.count + field.value.count > limit {
            if field.known == .cookie, settings.ownCookies != nil { continue }
            throw MessageError(status: 431, detail: "A field of the head is too large.")
        }
    }

    public func requestRefused(_ error: MessageError) {
        requestWasHead = connection.request.head.methodKind == .head
        isHTTP10 = false
        refuse(error)
    }

    public func bodyArrived() { do throws(MessageError) { try gather() } catch { refuse(error) } }

    public func nextTurn() { if case .writing = state { writeRest() } else { bodyArrived() } }

    private static let tooLarge = MessageError(status: 413, detail: "The body is too large.")

    private func gather() throws(MessageError) {
        guard case .gathering(var request) = state else { return }
        var taken = 0
        while true {
            guard taken < Self.share else { return connection.server.loop.atNextTurn(self) }
            var piece: InlineArray<4096, UInt8> = .init(repeating: 0)
            var span = piece.mutableSpan
            switch try connection.readBody(into: &span) {
            case .bytes(let count):
                taken += count
                bodyLength += count
                guard let maxBodyBytes else { continue }
                guard bodyLength <= maxBodyBytes else { throw Self.tooLarge }
                body.append(copying: piece.span.extracting(first: count))
            case .wait: return waitForBody()
            case .end:
                connection.setDeadline(after: .off)
                request.body = body
                request.bodyLength = bodyLength
                body = []
                return answer(request)
            case .cut:
                state = .idle
                return connection.close(cut: true)
            case .gone: return programLeft(.gone)
            }
        }
    }

    private func waitForBody() {
        let settings = connection.server.settings
        guard let timeout = settings.requestTimeout else { return connection.setDeadline(after: settings.idleTimeout) }
        connection.setDeadline(after: timeout.less(connection.now.since(began)))
    }

    public func deadlinePassed() {
        switch state {
        case .pausing(let request):
            state = .gathering(request)
            began = connection.now
            nextTurn()
        case .gathering: refuse(MessageError(status: 408, detail: "The body of the request did not arrive in time."))
        case .idle, .answering, .streaming, .writing: return
        }
    }

    // MARK: The answer

    private func answer(_ request: ServerRequest) {
        number &+= 1
        let (number, respond, me) = (number, respond, LoopBound(self, on: connection.server.loop))
        let task = Task {
            let response = await respond(request)
            me.loop.execute { me.value.send(response, number) }
        }
        state = .answering(number: number, task: task)
    }

    private func send(_ response: ServerResponse, _ number: UInt64) {
        guard case .answering(number, _) = state else { return }
        switch response.body {
        case .whole(let bytes):
            writeHead(response, length: bytes.count)
            guard !requestWasHead else { return finish() }
            state = .writing(bytes, sent: 0)
            writeRest()
        case .pieces(let pieces):
            if isHTTP10 { keepsOpen = false }
            writeHead(response, length: nil)
            guard !requestWasHead else { return finish() }
            stream(pieces, number)
        }
    }

    /// Writes the next pieces of a whole answer. `outputTimeout` ends a program that reads nothing.
    private func writeRest() {
        guard case .writing(let bytes, var sent) = state else { return }
        let limit = sent + Self.share
        while sent < bytes.count {
            guard sent < limit else { return connection.server.loop.atNextTurn(self) }
            let end = min(bytes.count, sent + Self.piece)
            guard connection.write(bytes.span.extracting(sent..<end), .all) != nil else { return programLeft(.gone) }
            sent = end
            state = .writing(bytes, sent: sent)
            if sent < bytes.count, connection.isFull { return connection.waitForRoom() }
        }
        finish()
    }

    private func stream(_ pieces: AsyncStream<[UInt8]>, _ number: UInt64) {
        let me = LoopBound(self, on: connection.server.loop)
        let task = Task {
            for await piece in pieces {
                let isConnected = await withCheckedContinuation { continuation in
                    me.loop.execute { me.value.write(piece, number, continuation) }
                }
                guard isConnected else { return }
            }
            me.loop.execute { me.value.streamEnded(number) }
        }
        state = .streaming(number: number, task: task)
    }

    /// Writes a piece. Resumes `continuation` with `true` once the next piece fits, with `false` if the program is
    /// gone.
    private func write(_ piece: [UInt8], _ number: UInt64, _ continuation: CheckedContinuation<Bool, Never>) {
        guard case .streaming(number, _) = state else { return continuation.resume(returning: false) }
        guard !piece.isEmpty else { return continuation.resume(returning: true) }
        guard connection.write(piece.span, .all) != nil else {
            continuation.resume(returning: false)
            return programLeft(.gone)
        }
        guard connection.isFull else { return continuation.resume(returning: true) }
        roomWaiter = continuation
        connection.waitForRoom()
    }

    public func roomCame() {
        writeRest()
        roomWaiter?.resume(returning: true)
        roomWaiter = nil
    }

    private func streamEnded(_ number: UInt64) {
        guard case .streaming(number, _) = state else { return }
        finish()
    }

    private func finish() {
        state = .idle
        isPipelined = connection.hasInput(reading: false) == true
        connection.finish(trailers: [], keepsOpen: keepsOpen)
    }

    public func programLeft(_ leaving: ProgramLeaving) {
        switch state {
        case .answering(_, let task), .streaming(_, let task): task.cancel()
        case .idle, .pausing, .gathering, .writing: break
        }
        state = .idle
        roomWaiter?.resume(returning: false)
        roomWaiter = nil
    }

    private func refuse(_ error: MessageError) {
        keepsOpen = false
        writeHead(.plain(error.status, ""), length: error.detail.utf8.count + 1)
        state = .idle
        if !requestWasHead, connection.write(Array("\(error.detail)\n".utf8).span, .all) == nil { return }
        connection.finish(trailers: [], keepsOpen: false)
    }

    /// - Parameter length: `nil` when unknown.
    private func writeHead(_ response: ServerResponse, length: Int?) {
        let progress = connection.progress
        if progress.mustClose || !progress.isRequestComplete { keepsOpen = false }
        let hasContent = response.status != 204 && response.status != 304
        let isChunked = length == nil && hasContent && !isHTTP10 && !requestWasHead
        let head = AnswerHead(
            max(200, min(599, response.status)), isChunked ? .chunked : .none, keepsOpen: keepsOpen, isOwn: true)
        connection.answer(head, reason: Array(ReasonPhrase.of(response.status).utf8).span) { output in
            for (name, value) in response.fields where Self.fitsALine(name) && Self.fitsALine(value) {
                output.append(field: Array(name.utf8).span, Array(value.utf8).span)
            }
            if let length, hasContent {
                output.append("Content-Length: ")
                output.append(decimal: UInt64(length))
                output.append("\r\n")
            }
        }
    }

    /// Whether the text has no control characters, which could end a line (RFC 9110, section 5.5).
    private static func fitsALine(_ text: String) -> Bool { ASCII.isFieldValue(text, allowingTabs: true) }
}
