import CurlTransport
import HTTP2
import Reactor

/// The HTTP/2 connections to one origin, and the requests that wait for a stream. Loop's thread only.
final class HTTP2Origin {
    let key: HTTP2Pool.Key
    private unowned let pool: HTTP2Pool
    /// Ready connections, and connections that are being dialled.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var connections: [HTTP2UpstreamConnection] = []
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    /// Requests that wait for a stream, in the order of their numbers.
    private var waiting: [HTTP2UpstreamStream] = []
    private var lastNumber: UInt64 = 0
    /// Time until which HTTP/1.1 is used, because the server did not offer HTTP/2.
    private var http1Until = LoopTime(nanoseconds: 0)
    private var timer: LoopTimer?
    private var isServing = false
    /// Whether a request that is not in `waiting` looks for a connection. Then the origin must not be removed.
    private var isBeginning = false
    /// Number of streams that a connection allowed last. Each connection gets at most this number until its SETTINGS come:
    /// the server refuses further streams, and a refused request is sent only once more.
    private(set) var usualStreams = HTTP2Session.assumedStreams

    init(_ key: HTTP2Pool.Key, in pool: HTTP2Pool) {
        self.key = key
        self.pool = pool
        timer = LoopTimer(on: pool.loop) { [unowned self] in expire() }
    }

    var loop: EventLoop { pool.loop }
    var buffers: UpstreamStreamPool { pool.buffers }
    var spares: SpareBuffers { pool.spares }
    var liveness: HTTP2Liveness { pool.liveness }
    var lacksHTTP2: Bool { loop.now < http1Until }

    // MARK: Requests

    /// Begins a request on a connection that has room, or queues the request.
    /// - Returns: the end, if the request failed at once.
    func begin(_ exchange: HTTP2UpstreamStream) -> UpstreamEnd? {
        if !exchange.request.needsNewConnection, waiting.isEmpty, let connection = readyConnection() {
            do throws(TransportError) { try exchange.open(on: connection) } catch { return exchange.end(with: error) }
            return nil
        }
        queue(exchange)
        do throws(TransportError) { try dialIfNeeded() } catch {
            if let index = index(of: exchange) { waiting.remove(at: index) }
            return exchange.end(with: error)
        }
        return nil
    }

    /// Queues a request. The caller dials if necessary.
    func queue(_ exchange: HTTP2UpstreamStream) {
        lastNumber += 1
        exchange.wait(
            at: self, number: lastNumber, from: loop.now, until: loop.now + pool.carriers.options.connectTimeout)
        waiting.append(exchange)
        if waiting.count == 1 { timer?.schedule(at: exchange.deadline) }
    }

    /// Returns a connection that has room. Removes connections that turn out to be closed.
    private func readyConnection() -> HTTP2UpstreamConnection? {
        let wasBeginning = isBeginning
        isBeginning = true
        defer { isBeginning = wasBeginning }
        return connections.first { $0.isReady && $0.takesRequest() }
    }

    func remove(_ exchange: HTTP2UpstreamStream) {
        if let index = index(of: exchange) { waiting.remove(at: index) }
        if waiting.isEmpty { cancelDials { $0.request.isQueued } }
    }

    /// Finds a waiting request by binary search, because thousands may leave at once.
    private func index(of exchange: HTTP2UpstreamStream) -> Int? {
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if waiting[middle].number < exchange.number { low = middle + 1 } else { high = middle }
        }
        return low < waiting.count && waiting[low] === exchange ? low : nil
    }

    private func cancelDials(where isUnneeded: (HTTP2UpstreamConnection) -> Bool) {
        for connection in connections where !connection.isReady && isUnneeded(connection) {
            connection.request.cancel()
            connections.removeAll { $0 === connection }
        }
    }

    private func dialIfNeeded() throws(TransportError) {
        let dialling = connections.count { !$0.isReady || $0.isProbed }
        guard waiting.count > dialling * usualStreams else { return }
        let connection = HTTP2UpstreamConnection(self)
        connections.append(connection)
        do throws(TransportError) {
            // A new connection arrives later, by `carrierArrived`.
            _ = try pool.carriers.connect(
                to: key.origin, for: connection, connection.request, use: key.isKnown ? .knownHTTP2 : .http2)
        } catch {
            connections.removeLast()
            throw error
        }
    }

    // MARK: Waiting

    /// Whether requests wait and no connection is being dialled or checked: a stream or a connection has to end first.
    var isQueued: Bool {
        !waiting.isEmpty && connections.allSatisfy { $0.isReady ? !$0.isProbed : $0.request.isQueued }
    }

    /// Whether a program still wants one of the waiting requests.
    var hasWanted: Bool { waiting.contains { $0.isWanted } }

    /// Number of requests with a present program that wait until a stream or a connection ends.
    var shortage: Int { isQueued ? waiting.count { $0.isWanted } : 0 }

    /// Opens streams for waiting requests.
    func serve() {
        guard !waiting.isEmpty, !isServing else { return }
        isServing = true
        defer { isServing = false }
        for connection in connections where connection.isReady {
            while let index = next(for: connection), connection.takesRequest() {
                let exchange = waiting.remove(at: index)
                do throws(TransportError) { try exchange.open(on: connection) } catch { exchange.tell(error) }
            }
        }
        // A queued dial is no longer needed, and would take a connection from another request.
        if waiting.isEmpty { cancelDials { $0.request.isQueued } }
    }

    private func next(for connection: HTTP2UpstreamConnection) -> Int? {
        func fits(_ exchange: HTTP2UpstreamStream) -> Bool {
            !exchange.request.needsNewConnection || connection.notes.arrived >= exchange.began
        }
        return waiting.firstIndex { $0.isWanted && fits($0) } ?? waiting.firstIndex { fits($0) }
    }

    /// Ends requests that got no stream in time. While a connection is being dialled, requests wait for it.
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

    func connectionArrived() {
        serve()
        dialMore()
    }

    /// - Parameter streams: number of streams that a connection allows now.
    func note(streams: Int) { usualStreams = min(max(1, streams), HTTP2Session.assumedStreams) }

    /// Dials for the requests that wait, if necessary.
    func dialMore() {
        guard !waiting.isEmpty else { return }
        do throws(TransportError) { try dialIfNeeded() } catch { fail(error) }
    }

    func failed(_ connection: HTTP2UpstreamConnection, _ error: TransportError) {
        connections.removeAll { $0 === connection }
        if error.kind == .connectionLimit {
            // The dial got no slot in time. Only requests past their own deadlines fail.
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

    /// Handles a server that chose HTTP/1.1. Requests then use HTTP/1.1, the first of them on this connection.
    func lacksHTTP2(_ connection: HTTP2UpstreamConnection, _ carrier: Carrier) {
        http1Until = loop.now + pool.carriers.options.maxConnectionAge
        carrier.release(unused: true)
        connections.removeAll { $0 === connection }
        cancelDials { _ in true }
        fail(TransportError(.http2Missing, message: "the server does not offer HTTP/2"))
        forgetIfUnused()
    }

    func remove(_ connection: HTTP2UpstreamConnection, _ error: TransportError) {
        connections.removeAll { $0 === connection }
        if connection.notes.hasWorked {
            dialMore()
        } else if connections.allSatisfy({ $0.isReady }) {
            // No request could begin on this connection, so a new connection would not help.
            fail(error)
        }
        forgetIfUnused()
    }

    /// Drops the connections when the pool no longer exists.
    func abandon() { for connection in connections { connection.abandon() } }

    private func forgetIfUnused() { if isUnused, !lacksHTTP2 { pool.remove(self) } }

    var isUnused: Bool { connections.isEmpty && waiting.isEmpty && !isBeginning }

    /// Number of requests that wait for a stream, minus the queued dials, which the carrier pool counts itself.
    var waitingForStream: Int { max(0, waiting.count - connections.count { $0.request.isQueued }) }
}
