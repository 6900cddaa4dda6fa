import CurlTransport
import Glibc
import Reactor
import Synchronization
import TestSupport

typealias ConnectionPoolOnLoop = OnLoop<ConnectionPool>

extension OnLoop where Value == ConnectionPool {
    convenience init(_ change: @Sendable @escaping (inout PoolOptions) -> Void = { _ in }) async throws {
        try await self.init(change) { try ConnectionPool(options: $0, loop: $1) }
    }

    /// Starts an exchange. The probe records the result.
    func start(_ request: Request) async throws -> Probe {
        let probe = Probe(request, on: loop)
        try await loop.run { [value] in try probe.start(value.value) }
        return probe
    }

    /// Sends a request and waits for its end.
    func send(_ request: Request) async throws -> Probe.Record { try await start(request).ended() }

    /// Whether the loop's thread sleeps while nothing happens: a loop that spins uses all of its time.
    func rests() async throws -> Bool {
        let before = try await loop.run { Self.threadTime() }
        try await Task.sleep(for: .milliseconds(200))
        return try await loop.run { Self.threadTime() } - before < .milliseconds(50)
    }

    /// CPU time of the calling thread so far (clock_gettime(2)).
    private static func threadTime() -> Duration {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Exchanges under way and waiting.
    func load() async throws -> Int {
        try await loop.run { [value] in value.value.load }
    }
}

/// A request, and the behaviour of its delegate.
struct Request: Sendable {
    enum Upload: Sendable {
        case none
        /// Sent as fast as it is asked for.
        case bytes([UInt8])
        case chunks([UInt8])
        /// A body that the test feeds in pieces: `Probe.feed`.
        case fed(known: UInt64?)
    }
    enum Moment: Sendable { case head, body, upload, end }

    var origin: Origin
    var method = "GET"
    var target = "/"
    var fields: [(String, String)] = []
    var upload = Upload.none
    var fresh = false

    /// The body is paused each time so many more bytes have come.
    var pausesEvery: Int?
    /// The delegate refuses this call.
    var refusesAt: Moment?
    /// The delegate cancels from within that call.
    var cancelsAt: Moment?
    /// The delegate starts this one from within that call.
    var next: (moment: Moment, request: [Request])?

    init(_ origin: Origin, _ method: String = "GET", _ target: String = "/") {
        self.origin = origin
        self.method = method
        self.target = target
    }

    init(_ origin: RecordingOrigin, _ method: String = "GET", _ target: String = "/") {
        self.init(.plain(origin.port), method, target)
    }
}

extension Origin {
    static func plain(_ port: UInt16, host: String = "127.0.0.1") -> Origin {
        Origin(scheme: .http, host: host, port: port)
    }

    static func secure(_ port: UInt16, host: String = "localhost", serverName: String? = nil) -> Origin {
        Origin(scheme: .https, host: host, port: port, serverName: serverName)
    }
}

/// One exchange: its delegate on the loop, and for the test a record of what happened.
final class Probe: TransferDelegate, @unchecked Sendable {
    // @unchecked: `transfer`, `seen` and `sent` belong to the loop's thread, everything else is constant or locked.
    struct Record: Sendable {
        /// Without their CRLF.
        var lines: [String] = []
        var body: [UInt8] = []
        var pauses = 0
        var isHTTP2 = false
        var ends = 0
        var error: TransportError?
        var calledAfterEnd = false

        var text: String { String(decoding: body, as: UTF8.self) }
        var status: String { lines.first ?? "" }
    }

    private struct State {
        var record = Record()
        var fed: [UInt8] = []
        var isFed = false
    }

    private let request: Request
    private let loop: EventLoop
    private let state = Mutex(State())
    private var transfer: Transfer?
    private var pool: LoopBound<ConnectionPool>?
    private var sent = 0
    private var nextPause: Int
    private var isCancelled = false

    init(_ request: Request, on loop: EventLoop) {
        self.request = request
        self.loop = loop
        nextPause = request.pausesEvery ?? .max
    }

    // MARK: For the test

    var record: Record { state.withLock { $0.record } }

    func ended(within limit: Duration = .seconds(20)) async throws -> Record {
        try await eventually("the end of the exchange", within: limit) { self.record.ends > 0 ? self.record : nil }
    }

    func feed(_ bytes: [UInt8], isLast: Bool = false) async throws {
        state.withLock {
            $0.fed += bytes
            $0.isFed = isLast
        }
        try await loop.run { self.transfer?.resumeUpload() }
    }

    func resumeBody() async throws { try await loop.run { self.transfer?.resumeBody() } }

    func cancel() async throws {
        try await loop.run {
            self.isCancelled = true
            self.transfer?.cancel()
            self.transfer = nil
        }
    }

    // MARK: On the loop

    fileprivate func start(_ pool: ConnectionPool) throws {
        self.pool = LoopBound(pool, on: loop)
        let transfer = try pool.acquire()
        let length: UploadLength =
            switch request.upload {
            case .none: .noBody
            case .bytes(let bytes): .known(UInt64(bytes.count))
            case .chunks: .unknown
            case .fed(let known): known.map { .known($0) } ?? .unknown
            }
        try transfer.prepare(
            origin: request.origin, method: Array(request.method.utf8).span, target: Array(request.target.utf8).span,
            isHead: request.method == "HEAD", upload: length)
        transfer.append(name: Array("Host".utf8).span, value: Array(request.origin.authority.utf8).span)
        for (name, value) in request.fields {
            transfer.append(name: Array(name.utf8).span, value: Array(value.utf8).span)
        }
        self.transfer = transfer
        try transfer.start(delegate: self, fresh: request.fresh)
    }

    /// Does what the request wants done at that moment.
    /// - Returns: whether the delegate is content.
    private func pass(_ moment: Request.Moment) -> Bool {
        state.withLock { if $0.record.ends > 0 || isCancelled { $0.record.calledAfterEnd = true } }
        if let next = request.next, next.moment == moment, let pool {
            for request in next.request { started.append(Probe(request, on: loop)) }
            for probe in started { try? probe.start(pool.value) }
        }
        if request.cancelsAt == moment {
            isCancelled = true
            transfer?.cancel()
            transfer = nil
        }
        return request.refusesAt != moment
    }

    /// Requests that it has started.
    private(set) var started: [Probe] = []

    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool {
        var line: [UInt8] = []
        for index in headerLine.indices where headerLine[index] != 13 && headerLine[index] != 10 {
            line.append(headerLine[index])
        }
        state.withLock {
            $0.record.lines.append(String(decoding: line, as: UTF8.self))
            $0.record.isHTTP2 = transfer.isHTTP2
        }
        return line.isEmpty ? pass(.head) : true
    }

    func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep {
        let count = state.withLock { $0.record.body.count }
        if count >= nextPause {
            nextPause = count + (request.pausesEvery ?? .max)
            state.withLock { $0.record.pauses += 1 }
            return .pause
        }
        state.withLock { state in
            unsafe body.withUnsafeBufferPointer { bytes in unsafe state.record.body.append(contentsOf: bytes) }
        }
        return pass(.body) ? .taken : .abort
    }

    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep {
        guard pass(.upload) else { return .abort }
        switch request.upload {
        case .none: return .abort
        case .bytes(let bytes), .chunks(let bytes):
            guard sent < bytes.count else { return .end }
            let count = min(upload.count, bytes.count - sent)
            for index in 0..<count { upload[index] = bytes[sent + index] }
            sent += count
            return .bytes(count)
        case .fed:
            let piece = state.withLock { state in
                let piece = Array(state.fed.prefix(upload.count))
                state.fed.removeFirst(piece.count)
                return piece
            }
            guard !piece.isEmpty else { return state.withLock { $0.isFed } ? .end : .wait }
            for index in piece.indices { upload[index] = piece[index] }
            return .bytes(piece.count)
        }
    }

    func transferEnded(_ transfer: Transfer, error: TransportError?) {
        _ = pass(.end)
        state.withLock {
            $0.record.ends += 1
            $0.record.error = error
        }
        self.transfer = nil
    }
}
