import HTTP2
import HTTPMessage
import HTTPServer
import Reactor
import TestSupport
import WireText

/// A client's session of HTTP/2 on a stream in memory, and a server with `HTTP2Echo`es at its other end.
final class HTTP2Client: Sendable {
    struct Request {
        var fields: [(String, String)]

        init(_ fields: [(String, String)]) { self.fields = fields }

        static func get(_ path: String) -> Request {
            Request([(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "h.test")])
        }

        static func post(_ path: String) -> Request {
            Request([(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "h.test")])
        }
    }

    struct Answer: Sendable {
        var fields: [String: String] = [:]
        var body = ""
        var events: [String] = []
        var isWhole = false
    }

    private let loop: EventLoop
    private let serving: LoopBound<Serving>

    /// - Parameter window: bytes that the client takes of each answer; `nil`: all.
    init(window: Int? = nil, _ change: @Sendable (inout ServerSettings) -> Void = { _ in }) async throws {
        var settings = ServerSettings()
        settings.servesHTTP2 = true
        change(&settings)
        let (chosen, loop) = (settings, try EventLoop.start(name: "http2"))
        self.loop = loop
        serving = try await loop.run { LoopBound(try Serving(loop, chosen, window), on: loop) }
    }

    deinit { loop.stop() }

    /// - Returns: the stream's number.
    func send(
        _ request: Request, body: String? = nil, trailers: [(String, String)] = []
    ) async throws -> Int32 {
        let fields = request.fields
        return try await onLoop { serving in
            try serving.send(fields, body.map { Array($0.utf8) }, trailers)
        }
    }

    /// The answers so far, once nothing moves any more.
    func answers() async throws -> [Int32: Answer] {
        // The server may handle bytes in a turn, and send in a later one.
        var quietTurns = 0
        while quietTurns < 4 { quietTurns = try await onLoop { try $0.exchange() } ? 0 : quietTurns + 1 }
        return try await onLoop { $0.answers }
    }

    func deliver(_ bytes: [UInt8]) async throws {
        try await onLoop { $0.stream.deliver(bytes) }
        _ = try await onLoop { try $0.read() }
    }

    /// Whether the server can send.
    func setRoom(_ hasRoom: Bool) async throws {
        try await onLoop { hasRoom ? $0.stream.giveRoom() : $0.stream.takeRoom() }
    }

    /// Has the server refuse further streams.
    func refuseStreams() async throws { try await onLoop { $0.root?.refusesStreams = true } }

    func drain() async throws { try await onLoop { $0.server.drain {} } }

    /// Lets the held requests be answered.
    func release() async throws { try await onLoop { serving in serving.echoes.forEach { $0.release() } } }

    func reset(_ stream: Int32) async throws { try await onLoop { $0.session.reset(stream, .cancel) } }

    func leave() async throws {
        try await onLoop { $0.stream.end() }
        try await onLoop { _ in }
    }

    /// Number of requests whose client left.
    var left: Int { get async throws { try await onLoop { serving in serving.echoes.reduce(0) { $0 + $1.left } } } }
    /// Number of requests that handlers began.
    var begun: Int { get async throws { try await turns.count } }
    /// Turn of the loop in which each request began.
    var turns: [UInt64] { get async throws { try await onLoop { serving in serving.echoes.flatMap(\.turns) } } }
    /// Bytes of answers that the server took from its handlers.
    var taken: Int { get async throws { try await onLoop { serving in serving.echoes.reduce(0) { $0 + $1.sent } } } }
    /// Bytes of bodies that the client could not send.
    var unsent: Int { get async throws { try await onLoop { $0.unsent } } }

    /// Takes the answers from now on, whatever their size.
    func takeAll() async throws { try await onLoop { $0.takeAll() } }

    var connections: Int { get async throws { try await onLoop { $0.server.count } } }
    var isClosed: Bool { get async throws { try await onLoop { $0.stream.isShutDown || $0.stream.isClosed } } }
    var goAway: UInt32? {
        get async throws {
            try await onLoop {
                try $0.read()
                return $0.goAway
            }
        }
    }

    private func onLoop<Value: Sendable>(
        _ body: @escaping @Sendable (Serving) throws -> Value
    ) async throws -> Value {
        try await loop.run { [serving] in try body(serving.value) }
    }
}

/// Both ends, on the loop.
private final class Serving {
    let stream = MemoryStream()
    let session: HTTP2Session
    private(set) var server: ServerLoop!
    private(set) var echoes: [HTTP2Echo] = []
    /// Handler of the connection.
    private(set) var root: HTTP2Echo?
    private(set) var answers: [Int32: HTTP2Client.Answer] = [:]
    private(set) var goAway: UInt32?
    private var received = 0
    private var takesAll: Bool
    /// Bytes that the client has not consumed, by stream.
    private var untaken: [Int32: Int] = [:]
    /// Bytes that the session has not taken yet, by stream, and the trailers behind them.
    private var uploads: [Int32: (bytes: [UInt8], trailers: [(String, String)])] = [:]

    init(_ loop: EventLoop, _ settings: ServerSettings, _ window: Int?) throws {
        takesAll = window == nil
        var mine = HTTP2Settings()
        if let window { (mine.streamWindow, mine.connectionWindow) = (window, max(window, mine.connectionWindow)) }
        session = try HTTP2Session(.client, mine, spares: SpareBuffers(), at: .current())
        server = ServerLoop(
            settings, on: loop, acceptFailed: { _ in },
            makeHandler: { [unowned self] client in
                let root = HTTP2Echo(client, turn: { loop.now }) { [unowned self] in echoes.append($0) }
                self.root = root
                return root
            })
        server.serve(stream, listener: 0)
    }

    var unsent: Int {
        uploads.reduce(0) { $0 + $1.value.bytes.count } + answers.keys.reduce(0) { $0 + session.unsent(of: $1) }
    }

    func takeAll() {
        takesAll = true
        for (id, count) in untaken { session.consume(id, count) }
        untaken = [:]
    }

    func send(_ fields: [(String, String)], _ body: [UInt8]?, _ trailers: [(String, String)]) throws -> Int32 {
        let id = try session.request(list(fields), hasBody: body != nil)
        answers[id] = HTTP2Client.Answer()
        if let body { uploads[id] = (body, trailers) }
        return id
    }

    /// - Returns: whether bytes moved.
    func exchange() throws -> Bool {
        for (id, upload) in uploads {
            let count = session.write(upload.bytes.span, to: id)
            uploads[id]?.bytes.removeFirst(count)
            guard count == upload.bytes.count else { continue }
            uploads[id] = nil
            session.end(id, trailers: list(upload.trailers))
        }
        var output = ByteBuffer()
        try session.fill(&output, limit: 1 << 20)
        let sent = [UInt8](copying: output.bytes)
        take([])
        if !sent.isEmpty { stream.deliver(sent) }
        return try read() || !sent.isEmpty || session.wantsWrite
    }

    /// - Returns: whether the server has sent bytes.
    @discardableResult
    func read() throws -> Bool {
        let news = Array(stream.written[received...])
        received = stream.written.count
        var rest = news
        repeat {
            let count = try session.receive(rest.span, at: .current())
            take(rest)
            rest.removeFirst(count)
        } while session.load.isPaused
        return !news.isEmpty
    }

    private func take(_ bytes: [UInt8]) {
        while let event = session.next() {
            switch event {
            case .head(let id, let block):
                note(id, block)
                answers[id]?.events.append(block.endsStream ? "head last" : "head")
            case .trailers(let id, let block): note(id, block)
            case .data(let id, let range):
                answers[id]?.body += String(decoding: bytes[range], as: UTF8.self)
                if takesAll { session.consume(id, range.count) } else { untaken[id, default: 0] += range.count }
            case .ended(let id):
                answers[id]?.events.append("ended")
                answers[id]?.isWhole = true
            case .closed(let id, let end): answers[id]?.events.append("closed \(end.code.rawValue)")
            case .goAway(_, let code): goAway = code.rawValue
            default: break
            }
        }
    }

    private func note(_ id: Int32, _ block: HTTP2Block) {
        session.received.forEach(block.fields) { answers[id]?.fields[$0.text] = $1.text }
    }

    private func list(_ fields: [(String, String)]) -> HTTP2FieldList {
        var list = HTTP2FieldList()
        for (name, value) in fields { list.append(Array(name.utf8).span, Array(value.utf8).span) }
        return list
    }
}

/// Answers with the request's line, Host and body, as they were read.
private final class HTTP2Echo: ProgramStreamHandler {
    private let client: any ProgramStream
    private let made: (HTTP2Echo) -> Void
    private let turn: () -> LoopTime
    private var body: [UInt8] = []
    private(set) var sent = 0
    private(set) var turns: [UInt64] = []
    private(set) var left = 0
    private var isHeld = false
    private var isEarly = false
    private var isCut = false
    private var isLast = false
    var refusesStreams = false

    init(
        _ client: any ProgramStream, turn: @escaping () -> LoopTime, made: @escaping (HTTP2Echo) -> Void
    ) {
        self.client = client
        self.turn = turn
        self.made = made
    }

    func handler(for stream: any ProgramStream) -> (any ProgramStreamHandler)? {
        guard !refusesStreams else { return nil }
        let echo = HTTP2Echo(stream, turn: turn, made: made)
        made(echo)
        return echo
    }

    func requestBegan() {
        sent = 0
        turns.append(turn().nanoseconds)
        body = client.request.with { head, bytes in
            let target = bytes.extracting(head.target.range).text
            if target.hasSuffix("/empty") { return [] }
            if target.hasSuffix("/large") { return Array(repeating: UInt8(ascii: "a"), count: 1 << 20) }
            isHeld = target.hasSuffix("/held")
            isEarly = target.hasSuffix("/early")
            isCut = target.hasSuffix("/cut")
            isLast = target.hasSuffix("/last")
            if target.hasSuffix("/fields") {
                return Array(
                    head.fields.map {
                        "\(bytes.extracting($0.name.range).text): \(bytes.extracting($0.value.range).text)\n"
                    }.joined().utf8)
            }
            let version = head.version == .http2 ? "HTTP/2" : "HTTP/1"
            return Array(
                "\(bytes.extracting(head.method.range).text) \(target) \(bytes.extracting(head.host.range).text) \(version) "
                    .utf8)
        }
        if isEarly { return answer() }
        if isCut {
            client.answer(AnswerHead(200, .chunked), reason: Array("OK".utf8).span) { _ in }
            _ = client.write(body.span, .all)
            return client.close(cut: true, code: .enhanceYourCalm)
        }
        if !isHeld { bodyArrived() }
    }

    func requestRefused(_ error: MessageError) {
        client.answer(AnswerHead(error.status, isOwn: true), reason: Array("No".utf8).span) { _ in }
        client.finish(trailers: [], keepsOpen: false)
    }

    func release() {
        guard isHeld else { return }
        isHeld = false
        bodyArrived()
    }

    func bodyArrived() {
        var room = [UInt8](repeating: 0, count: 1000)
        while true {
            var span = room.mutableSpan
            guard let step = try? client.readBody(into: &span) else { return client.close(cut: true) }
            switch step {
            case .bytes(let count): body += room[..<count]
            case .wait: return
            case .gone, .cut: return
            case .end: return answer()
            }
        }
    }

    private func answer() {
        for (name, value) in client.request.trailers {
            body += Array(" \(name.span.text)=\(value.span.text)".utf8)
        }
        client.answer(AnswerHead(200, .chunked), reason: Array("OK".utf8).span) { _ in }
        roomCame()
    }

    func roomCame() {
        while sent < body.count {
            guard let count = client.write(body.span.extracting(sent...), .part) else { return }
            sent += count
            if count == 0 { return }
        }
        let trailers =
            client.request.trailers.isEmpty ? [] : [(name: Array("trailer-of".utf8), value: [UInt8(ascii: "a")])]
        client.finish(trailers: trailers, keepsOpen: !isLast)
    }

    func programLeft(_ leaving: ProgramLeaving) { left += 1 }
    func deadlinePassed() { client.close(cut: true) }
}
