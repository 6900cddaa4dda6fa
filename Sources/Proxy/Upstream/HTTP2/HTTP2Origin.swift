import CurlTransport
import HTTP2
import Reactor

/// The connections with HTTP/2 to one origin, and the requests that wait for a stream. Loop's thread only.
final class HTTP2Origin {
    let origin: Origin
    private let use: CarrierUse
    private unowned let pool: HTTP2Pool
    /// Ready ones, and those being dialled.
    private var connections: [HTTP2Connection] = []
    private var waiting: [HTTP2Exchange] = []
    /// Time until which HTTP/2 is not tried, because the server does not offer it.
    private var http1Until = LoopTime(nanoseconds: 0)
    private var timer: LoopTimer?
    private var isServing = false
    /// A request looks for a connection, and needs this object.
    private var isBeginning = false
    /// Requests that a new connection is expected to take at once.
    private static let expectedStreams = 100

    init(_ origin: Origin, _ use: CarrierUse, in pool: HTTP2Pool) {
        self.origin = origin
        self.use = use
        self.pool = pool
        timer = LoopTimer(on: pool.loop) { [unowned self] in expire() }
    }

    var loop: EventLoop { pool.loop }
    var buffers: ExchangePool { pool.buffers }
    var spares: SpareBuffers { pool.spares }
    var liveness: HTTP2Liveness { pool.liveness }
    var lacksHTTP2: Bool { loop.now < http1Until }

    // MARK: Requests

    /// Begins on a connection that has room, else waits for one.
    /// - Returns: the end, where the request was over at once.
    func begin(_ exchange: HTTP2Exchange) -> UpstreamEnd? {
        if !exchange.request.isFresh, waiting.isEmpty, let connection = readyConnection() {
            return exchange.open(on: connection)
        }
        exchange.wait(at: self, from: loop.now, until: loop.now + pool.carriers.options.connectTimeout)
        waiting.append(exchange)
        if waiting.count == 1 { timer?.schedule(at: exchange.deadline) }
        do throws(TransportError) { try dialIfNeeded() } catch {
            waiting.removeAll { $0 === exchange }
            return exchange.end(with: error)
        }
        return nil
    }

    /// A connection that turns out to be closed leaves the list.
    private func readyConnection() -> HTTP2Connection? {
        let wasBeginning = isBeginning
        isBeginning = true
        defer { isBeginning = wasBeginning }
        return connections.first { $0.isReady && $0.takesRequest() }
    }

    func remove(_ exchange: HTTP2Exchange) {
        waiting.removeAll { $0 === exchange }
        if waiting.isEmpty { cancelDials { $0.request.isQueued } }
    }

    private func cancelDials(where isUnneeded: (HTTP2Connection) -> Bool) {
        for connection in connections where !connection.isReady && isUnneeded(connection) {
            connection.request.cancel()
            connections.removeAll { $0 === connection }
        }
    }

    private func dialIfNeeded() throws(TransportError) {
        let dialling = connections.count { !$0.isReady || $0.isProbed }
        guard waiting.count > dialling * Self.expectedStreams else { return }
        let connection = HTTP2Connection(self)
        connections.append(connection)
        do throws(TransportError) {
            // It is new, so it comes later.
            _ = try pool.carriers.connect(to: origin, for: connection, connection.request, use: use)
        } catch {
            connections.removeLast()
            throw error
        }
    }

    // MARK: Waiting

    /// Whether all waiting requests wait for a connection to end.
    var isQueued: Bool {
        !waiting.isEmpty && connections.allSatisfy { $0.isReady ? !$0.isProbed : $0.request.isQueued }
    }

    /// Whether a client still waits for one of the requests.
    var hasWanted: Bool { waiting.contains { $0.isWanted } }

    /// Number of requests that wait until a stream or a connection ends.
    var shortage: Int { isQueued ? waiting.count { $0.isWanted } : 0 }

    /// Gives streams to waiting requests.
    func serve() {
        guard !waiting.isEmpty, !isServing else { return }
        isServing = true
        defer { isServing = false }
        for connection in connections where connection.isReady {
            while let index = next(for: connection), connection.takesRequest() {
                let exchange = waiting.remove(at: index)
                if let end = exchange.open(on: connection) { exchange.tell(end) }
            }
        }
        // It would take the place of one that is in use.
        if waiting.isEmpty { cancelDials { $0.request.isQueued } }
    }

    private func next(for connection: HTTP2Connection) -> Int? {
        func fits(_ exchange: HTTP2Exchange) -> Bool {
            !exchange.request.isFresh || connection.marks.arrived >= exchange.began
        }
        return waiting.firstIndex { $0.isWanted && fits($0) } ?? waiting.firstIndex { fits($0) }
    }

    /// Ends requests that got no stream in time. Those that wait for a dial end with it.
    private func expire() {
        let isDialling = connections.contains { !$0.isReady && !$0.request.isQueued }
        while let first = waiting.first, first.deadline <= loop.now, !isDialling {
            waiting.removeFirst()
            first.tell(TransportError(.connectionLimit, message: "no stream became free"))
        }
        guard let first = waiting.first else { return cancelDials { $0.request.isQueued } }
        timer?.schedule(
            at: max(first.deadline, isDialling ? loop.now + pool.carriers.options.connectTimeout : loop.now))
    }

    // MARK: Connections

    func arrived(_ connection: HTTP2Connection) {
        serve()
        dialMore()
    }

    private func dialMore() {
        guard !waiting.isEmpty else { return }
        do throws(TransportError) { try dialIfNeeded() } catch { fail(error) }
    }

    func failed(_ connection: HTTP2Connection, _ error: TransportError) {
        connections.removeAll { $0 === connection }
        if error.kind == .connectionLimit {
            // Later requests may wait for longer.
            expire()
            dialMore()
        } else if connections.allSatisfy({ $0.isReady }) {
            fail(error)
        }
        forgetIfUnused()
    }

    private func fail(_ error: TransportError) {
        let failed = waiting
        waiting = []
        for exchange in failed { exchange.tell(error) }
    }

    /// The server chose HTTP/1.1: its requests go that way, the first of them on this connection.
    func lacksHTTP2(_ connection: HTTP2Connection, _ carrier: Carrier) {
        http1Until = loop.now + pool.carriers.options.maxConnectionAge
        carrier.release(unused: true)
        connections.removeAll { $0 === connection }
        cancelDials { _ in true }
        fail(TransportError(.http2Missing, message: "the server does not offer HTTP/2"))
        forgetIfUnused()
    }

    func remove(_ connection: HTTP2Connection, _ error: TransportError) {
        connections.removeAll { $0 === connection }
        if connection.marks.hasWorked {
            dialMore()
        } else if connections.allSatisfy({ $0.isReady }) {
            // Another one would have the same fate.
            fail(error)
        }
        forgetIfUnused()
    }

    /// The pool is gone.
    func abandon() { for connection in connections { connection.abandon() } }

    private func forgetIfUnused() {
        if connections.isEmpty, waiting.isEmpty, !lacksHTTP2, !isBeginning { pool.remove(self) }
    }

    var waitingCount: Int { waiting.count }
    /// Connections that wait for another one to end.
    var queuedDials: Int { connections.count { $0.request.isQueued } }
    var key: HTTP2Pool.Key { HTTP2Pool.Key(origin: origin, isKnown: use == .knownHTTP2) }
}
