import CurlTransport
import Reactor
import Synchronization
import TestSupport

typealias CarrierPoolOnLoop = OnLoop<CarrierPool>

/// How many connections a pool has, and how many wait for one.
struct CarrierCounts: Sendable, Equatable {
    var open = 0
    var idle = 0
    var waiting = 0
}

extension OnLoop where Value == CarrierPool {
    var pool: LoopBound<CarrierPool> { value }

    convenience init(_ change: @Sendable @escaping (inout PoolOptions) -> Void = { _ in }) async throws {
        try await self.init(change) { CarrierPool(options: $0, loop: $1) }
    }

    /// Requests a connection. The user records the result.
    func connect(
        _ origin: Origin, newConnection: Bool = false, tunnels: Bool = false, releasesAtOnce: Bool = false
    ) async throws -> CarrierUser {
        let user = CarrierUser(on: loop, releasesAtOnce: releasesAtOnce)
        let pool = pool
        try await loop.run {
            do throws(TransportError) {
                let carrier = try pool.value.connect(
                    to: origin, for: user, user.request, newConnection: newConnection,
                    use: tunnels ? .tunnel : .exchanges)
                if let carrier { user.carrierArrived(carrier) }
            } catch {
                user.carrierFailed(error)
            }
        }
        return user
    }

    /// Asks for one and waits for it.
    func connected(_ origin: Origin, newConnection: Bool = false, tunnels: Bool = false) async throws -> CarrierUser {
        let user = try await connect(origin, newConnection: newConnection, tunnels: tunnels)
        try await user.arrived()
        return user
    }

    /// Asks for one and waits for the reason why there is none.
    func failure(_ origin: Origin, tunnels: Bool = false) async throws -> TransportError {
        let user = try await connect(origin, tunnels: tunnels)
        return try await eventually("a failure") { user.record.failure }
    }

    /// One request and its answer, whose body has a Content-Length.
    func exchange(_ origin: Origin, newConnection: Bool = false, target: String = "/") async throws -> CarrierUser {
        let user = try await connected(origin, newConnection: newConnection)
        try await user.send("GET \(target) HTTP/1.1\r\nHost: \(origin.authority)\r\n\r\n")
        _ = try await user.answer()
        try await user.release()
        return user
    }

    /// Takes an idle connection within one turn of the loop. The loop waits for `goesOn` first.
    /// - Returns: whether a request may be written on it; the connection is closed.
    func takesUntouched(_ origin: Origin, isHeld: Gate, goesOn: Gate) async throws -> Bool {
        let user = CarrierUser(on: loop, releasesAtOnce: false)
        let pool = pool
        return try await loop.run {
            isHeld.open()
            goesOn.wait()
            guard let carrier = try pool.value.connect(to: origin, for: user, user.request) else {
                throw TestFailure("no connection was idle")
            }
            defer { carrier.close() }
            return carrier.isUntouched()
        }
    }

    var counts: CarrierCounts {
        get async throws {
            let pool = pool
            return try await loop.run {
                CarrierCounts(open: pool.value.open, idle: pool.value.idle, waiting: pool.value.waiting)
            }
        }
    }

    func settles(at counts: CarrierCounts) async throws {
        try await eventually("\(counts)") { try await self.counts == counts }
    }
}

/// One owner. Writes as fast as the connection takes the bytes, and reads all bytes.
final class CarrierUser: CarrierOwner, @unchecked Sendable {
    // @unchecked: `carrier`, `outbox` and `inbox` belong to the loop's thread, everything else is constant or locked.
    struct Record: Sendable {
        var arrivals = 0
        var isReused = false
        var needsAbsoluteForm = false
        var authorization = ""
        var failure: TransportError?
        var bytes: [UInt8] = []
        var isEndClean: Bool?
        var broken: TransportError?
        var sent = 0
        var blocks = 0
        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    let request = CarrierRequest()
    private let loop: EventLoop
    private let releasesAtOnce: Bool
    private let state = Mutex(Record())
    private(set) var carrier: Carrier?
    private var outbox = ByteBuffer()
    private var inbox = ByteBuffer()
    var reads = true

    init(on loop: EventLoop, releasesAtOnce: Bool) {
        self.loop = loop
        self.releasesAtOnce = releasesAtOnce
    }

    // MARK: For the test

    var record: Record { state.withLock { $0 } }

    func arrived() async throws {
        try await eventually("a connection") {
            if let failure = self.record.failure { throw TestFailure("no connection: \(failure)") }
            return self.record.arrivals > 0
        }
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws {
        try await loop.run {
            self.outbox.append(bytes)
            self.write()
        }
    }

    /// A head and as much as its Content-Length says.
    func answer() async throws -> String {
        try await eventually("an answer") {
            if let broken = self.record.broken { throw TestFailure("broken: \(broken)") }
            let text = self.record.text
            guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
            let lengths = text[..<end.lowerBound].split(separator: "\r\n").filter {
                $0.lowercased().hasPrefix("content-length: ")
            }
            let length = lengths.first.flatMap { Int($0.dropFirst(16)) } ?? 0
            return text[end.upperBound...].utf8.count >= length ? text : nil
        }
    }

    func ended() async throws -> Record {
        try await eventually("an end") {
            let record = self.record
            return record.isEndClean != nil || record.broken != nil ? record : nil
        }
    }

    func onLoop(_ body: @escaping @Sendable (CarrierUser) -> Void) async throws {
        try await loop.run { body(self) }
    }

    func release() async throws {
        try await onLoop {
            $0.carrier?.release()
            $0.carrier = nil
        }
    }

    func close() async throws {
        try await onLoop {
            $0.carrier?.close()
            $0.carrier = nil
        }
    }

    func cancel() async throws { try await onLoop { $0.request.cancel() } }

    // MARK: On the loop

    func carrierArrived(_ carrier: Carrier) {
        state.withLock {
            $0.arrivals += 1
            $0.isReused = carrier.isReused
            $0.needsAbsoluteForm = carrier.needsAbsoluteForm
            $0.authorization = String(decoding: carrier.proxyAuthorization, as: UTF8.self)
        }
        if releasesAtOnce { return carrier.release() }
        self.carrier = carrier
        carrierReady(carrier)
    }

    func carrierFailed(_ error: TransportError) { state.withLock { $0.failure = error } }

    func carrierReady(_ carrier: Carrier) {
        write()
        read()
    }

    private func write() {
        guard let carrier else { return }
        while !outbox.isEmpty {
            switch outbox.withBytes({ carrier.send($0) }) {
            case .bytes(let count):
                outbox.consume(count)
                state.withLock { $0.sent += count }
            case .wouldBlock:
                state.withLock { $0.blocks += 1 }
                return
            case .failed(let error):
                state.withLock { $0.broken = error }
                return
            }
        }
    }

    func read() {
        guard let carrier, reads else { return }
        while true {
            switch carrier.receive(into: &inbox, limit: 16 * 1024) {
            case .bytes:
                inbox.withBytes { bytes in
                    state.withLock { record in
                        unsafe bytes.withUnsafeBufferPointer { unsafe record.bytes.append(contentsOf: $0) }
                    }
                }
                inbox.removeAll()
            case .wouldBlock: return
            case .end(let isClean):
                state.withLock { $0.isEndClean = isClean }
                return
            case .failed(let error):
                state.withLock { $0.broken = error }
                return
            }
        }
    }
}
