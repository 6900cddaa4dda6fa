import Reactor
import WireText

/// Sends requests and gathers whole answers, for callers that may wait. An actor on the event loop, so that libcurl is
/// used only there.
public actor BufferedClient {
    public struct Request: Sendable {
        public var origin: Origin
        public var method = "GET"
        /// Path and query.
        public var target = "/"
        public var fields: [(name: String, value: String)] = []
        /// Fields with a credential as value, after the others.
        public var secretFields: [(name: String, value: any LentBytes)] = []
        public var body: (any LentBytes)?
        /// Time from start to last byte.
        public var timeout = Duration.seconds(10)
        /// Limit of the answer's body, with the framing of chunks.
        public var maxBodyBytes = 1 << 20

        public init(origin: Origin) { self.origin = origin }
    }

    public struct Answer<Body: Sendable>: Sendable {
        public var status: Int
        /// Names as received.
        public var fields: [(name: String, value: String)]
        public var body: Body
    }
    public typealias Response = Answer<[UInt8]>

    public enum Failure: Error, Sendable {
        case transport(TransportError)
        case timeout
        case bodyTooLarge
        /// A name or value is not allowed in a request.
        case invalidRequest
    }

    private nonisolated let loop: EventLoop
    private var options: PoolOptions
    private var pool: LoopBound<ConnectionPool>?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    public init(options: PoolOptions, loop: EventLoop) {
        self.options = options
        // libcurl has no limit for chunk extensions and trailers.
        self.options.keepsChunks = true
        self.options.wipesAnswers = true
        self.loop = loop
    }

    /// Uses a new event loop, which runs until the process ends.
    public init(options: PoolOptions) throws(SystemError) {
        self.init(options: options, loop: try EventLoop.start(name: "curl"))
    }

    /// Sends one request and gathers the answer. Redirects are not followed. A cancelled task ends the exchange.
    public func send(_ request: Request) async throws(Failure) -> Response {
        try await send(request) { [UInt8](copying: $0) }
    }

    /// Like `send`, for an answer with secrets: only `keeping` can copy its body.
    public func send<Body: Sendable>(
        _ request: Request, keeping: @escaping @Sendable (Span<UInt8>) -> Body
    ) async throws(Failure) -> Answer<Body> {
        guard request.isValid else { throw .invalidRequest }
        let exchange = BufferedExchange(request, keeping: keeping, loop: loop)
        let bound = LoopBound(exchange, on: loop)
        do {
            let pool = try self.pool ?? LoopBound(ConnectionPool(options: options, loop: loop), on: loop)
            self.pool = pool
            let transfer = try pool.value.acquire()
            try exchange.start(transfer)
        } catch let error as TransportError {
            throw .transport(error)
        } catch {
            throw .transport(TransportError(.internal, message: "unexpected error"))
        }
        let outcome = await withTaskCancellationHandler {
            // This closure does not touch the actor, so it is not isolated to it (SE-0420).
            await withCheckedContinuation { continuation in
                loop.execute { bound.value.wait(continuation) }
            }
        } onCancel: {
            loop.execute { bound.value.cancel() }
        }
        return try outcome.get()
    }
}

extension BufferedClient.Request {
    fileprivate var isValid: Bool {
        func isClean(_ text: String, _ least: UInt8) -> Bool {
            text.utf8.allSatisfy { ($0 >= least && $0 != 0x7f) || $0 == 9 }
        }
        return !method.isEmpty && method.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && isClean(target, 0x21)
            && fields.allSatisfy { !$0.name.isEmpty && isClean($0.name, 0x21) && isClean($0.value, 0x20) }
            && secretFields.allSatisfy { field in
                !field.name.isEmpty && isClean(field.name, 0x21)
                    && field.value.withSpan { value in
                        value.indices.allSatisfy { (value[$0] >= 0x20 && value[$0] != 0x7f) || value[$0] == 9 }
                    }
            }
    }
}

/// One exchange under way. Loop's thread only.
private final class BufferedExchange<Body: Sendable>: TransferDelegate {
    typealias Outcome = Result<BufferedClient.Answer<Body>, BufferedClient.Failure>

    private let request: BufferedClient.Request
    private let keeping: @Sendable (Span<UInt8>) -> Body
    private var transfer: Transfer?
    private var timer: LoopTimer?
    private var deadline = ContinuousClock.now
    private var sent = 0
    private var status = 0
    private var fields: [(name: String, value: String)] = []
    private var isHeadComplete = false
    /// Bytes of all heads, interim ones too, and of trailers.
    private var headBytes = 0
    private static var maxHeadBytes: Int { 64 * 1024 }
    private var body = ByteBuffer(isSecret: true)
    private var outcome: Outcome?
    private var continuation: CheckedContinuation<Outcome, Never>?

    init(
        _ request: BufferedClient.Request, keeping: @escaping @Sendable (Span<UInt8>) -> Body, loop: EventLoop
    ) {
        self.request = request
        self.keeping = keeping
        timer = LoopTimer(on: loop) { [unowned self] in
            transfer?.cancel()
            finish(.failure(.timeout))
        }
    }

    func start(_ transfer: Transfer) throws(TransportError) {
        let upload: UploadLength = request.body.map { .known(UInt64($0.count)) } ?? .noBody
        try transfer.prepare(
            origin: request.origin, method: Array(request.method.utf8).span, target: Array(request.target.utf8).span,
            isHead: request.method == "HEAD", upload: upload)
        transfer.append(name: Array("Host".utf8).span, value: Array(request.origin.authority.utf8).span)
        for field in request.fields {
            transfer.append(name: Array(field.name.utf8).span, value: Array(field.value.utf8).span)
        }
        for field in request.secretFields {
            field.value.withSpan { transfer.append(name: Array(field.name.utf8).span, value: $0) }
        }
        self.transfer = transfer
        timer?.schedule(after: request.timeout)
        deadline = .now + request.timeout
        try transfer.start(delegate: self)
    }

    /// A process that was suspended sends nothing late: its lease of a shared record may have ended.
    func transferWillSend(_ transfer: Transfer) -> Bool { .now < deadline }

    func wait(_ continuation: CheckedContinuation<Outcome, Never>) {
        if let outcome { continuation.resume(returning: outcome) } else { self.continuation = continuation }
    }

    func cancel() {
        guard outcome == nil else { return }
        transfer?.cancel()
        finish(.failure(.transport(TransportError(.aborted, message: "cancelled"))))
    }

    private func finish(_ outcome: Outcome) {
        guard self.outcome == nil else { return }
        self.outcome = outcome
        body.removeAll()
        transfer = nil
        timer = nil
        continuation?.resume(returning: outcome)
        continuation = nil
    }

    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool {
        headBytes += headerLine.count
        guard headBytes <= Self.maxHeadBytes else {
            end(.transport(TransportError(.responseMalformed, message: "the answer's head is too large")))
            return false
        }
        if isHeadComplete { return true }
        var line: [UInt8] = []
        for index in headerLine.indices where headerLine[index] != 13 && headerLine[index] != 10 {
            line.append(headerLine[index])
        }
        if line.isEmpty {
            isHeadComplete = status >= 200
            if !isHeadComplete { status = 0 }
        } else if status == 0 {
            // "HTTP/1.1 200 OK": libcurl has checked the three digits.
            status = Int(String(decoding: line.drop { $0 != 32 }.dropFirst().prefix(3), as: UTF8.self)) ?? 0
            fields = []
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            let value = line[(colon + 1)...].drop { $0 == 32 || $0 == 9 }
            fields.append((String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
        return true
    }

    /// libcurl frees the transfer after the callback.
    private func end(_ failure: BufferedClient.Failure) {
        transfer?.cancel()
        finish(.failure(failure))
    }

    func transfer(_ transfer: Transfer, body bytes: Span<UInt8>) -> BodyStep {
        guard body.count + bytes.count <= request.maxBodyBytes else {
            end(.bodyTooLarge)
            return .abort
        }
        body.append(bytes)
        return .taken
    }

    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep {
        guard let body = request.body else { return .abort }
        guard sent < body.count else { return .end }
        let count = min(upload.count, body.count - sent)
        body.withSpan { body in
            for index in 0..<count { upload[index] = body[sent + index] }
        }
        sent += count
        return .bytes(count)
    }

    func transferEnded(_ transfer: Transfer, error: TransportError?) {
        if let error {
            finish(.failure(.transport(error)))
        } else if isHeadComplete {
            if !body.isEmpty, !transfer.isHTTP2, fields.contains(where: { $0.name.lowercased() == "transfer-encoding" })
            {
                guard let content = ChunkedBody.content(of: body.bytes) else {
                    let message = "the chunks of the answer can't be read"
                    return finish(.failure(.transport(TransportError(.responseMalformed, message: message))))
                }
                body = content
            }
            let kept = body.withBytes { keeping($0) }
            finish(.success(BufferedClient.Answer(status: status, fields: fields, body: kept)))
        } else {
            finish(.failure(.transport(TransportError(.responseTruncated, message: "answer ended within its head"))))
        }
    }
}

extension Origin {
    /// The Host field: without the scheme's default port (RFC 9110, section 4.2.3).
    public var authority: String {
        port == (scheme == .https ? 443 : 80) ? host : "\(host):\(port)"
    }
}
