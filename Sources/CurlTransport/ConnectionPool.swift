import CLibcurl
import Reactor

/// Exchanges by libcurl's own engine with the peers of one security domain. Loop's thread only; it must outlive its
/// transfers.
@safe public final class ConnectionPool: NextTurnHandler {
    public let options: PoolOptions
    let loop: EventLoop
    let handle: MultiHandle

    private var idle: [Transfer] = []
    private var running: [ObjectIdentifier: Transfer] = [:]
    private var waiting: [Transfer] = []

    /// libcurl's own timer, and the one for exchanges that wait for a connection.
    private var timer: LoopTimer?
    private var waitTimer: LoopTimer?
    /// libcurl asked to be called at once.
    private var isKicked = false
    private var isKickDelayed = false
    private var kicks = Kicks()
    /// Within a call into libcurl, or handling its results.
    private var isDriving = false
    /// Within a callback from libcurl, where handles can be neither added nor removed.
    private var callbackDepth = 0
    /// An exchange was started within a callback and waits for its end.
    private var hasDeferred = false
    private var cancelled: [Transfer] = []
    private var unpaused: [Transfer] = []

    /// Scratch memory for strings that libcurl copies at once.
    var scratch = ByteBuffer(capacity: 1024)

    /// - Throws: `TransportError` when libcurl lacks memory.
    public init(options: PoolOptions, loop: EventLoop) throws(TransportError) {
        self.options = options
        self.loop = loop
        handle = try MultiHandle(maxConnections: options.maxConnections, loop: loop)
        handle.sockets.ready = { [unowned self] descriptor, mask in drive { handle.act(descriptor, mask) } }
        handle.timerSet = { [unowned self] in setTimer($0) }
        timer = LoopTimer(on: loop) { [unowned self] in drive { isKicked = true } }
        waitTimer = LoopTimer(on: loop) { [unowned self] in expireWaiting() }
    }

    deinit {
        for transfer in running.values { handle.remove(transfer.easy) }
        running = [:]
        idle = []
        waiting = []
        cancelled = []
        unpaused = []
    }

    /// Returns a transfer to prepare and start.
    public func acquire() throws(TransportError) -> Transfer {
        while let transfer = idle.popLast() {
            if transfer.generation == options.material?.generation ?? 0 { return transfer }
        }
        return try Transfer(pool: self)
    }

    /// Number of exchanges, with waiting ones.
    public var load: Int { running.count + waitingCount }
    /// Number of connections, with those being dialled.
    public var open: Int { handle.sockets.open }
    /// Number of idle connections: each running exchange uses one.
    public var idleConnections: Int { max(0, open - running.count) }
    /// Number of waiting exchanges.
    public var waitingCount: Int { waiting.count }
    /// Number of exchanges that have to end before every wanted one in the queue is admitted.
    public var shortage: Int {
        guard !waiting.isEmpty else { return 0 }
        return max(0, waiting.count { $0.delegate?.isWanted == true } - (options.maxConnections - running.count))
    }

    // MARK: For Transfer

    func admit(_ transfer: Transfer) throws(TransportError) {
        guard callbackDepth == 0, running.count < options.maxConnections else {
            transfer.state = .waiting
            if callbackDepth > 0 { hasDeferred = true }
            let limit = loop.now + options.connectTimeout
            transfer.waitLimit = limit
            waiting.append(transfer)
            if waiting.count == 1 { waitTimer?.schedule(at: limit) }
            return
        }
        try add(transfer)
    }

    private func add(_ transfer: Transfer) throws(TransportError) {
        transfer.state = .running
        running[ObjectIdentifier(transfer)] = transfer
        do throws(TransportError) {
            try attach(transfer)
        } catch {
            running[ObjectIdentifier(transfer)] = nil
            throw error
        }
    }

    func attach(_ transfer: Transfer) throws(TransportError) {
        var failure: TransportError?
        drive {
            do throws(TransportError) { try handle.add(transfer.easy) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    func detach(_ transfer: Transfer) { handle.remove(transfer.easy) }

    func cancel(_ transfer: Transfer) {
        guard !transfer.isCancelled else { return }
        switch transfer.state {
        case .idle: return
        case .preparing: retire(transfer)
        case .waiting:
            waiting.removeAll { $0 === transfer }
            retire(transfer)
        case .running:
            transfer.isCancelled = true
            transfer.delegate = nil
            if callbackDepth > 0 {
                cancelled.append(transfer)
            } else {
                drive { remove(transfer) }
            }
        }
    }

    func applyPause(_ transfer: Transfer) {
        guard transfer.state == .running, !transfer.isCancelled else { return }
        if callbackDepth > 0 {
            unpaused.append(transfer)
        } else {
            drive { unpause(transfer) }
        }
    }

    private func unpause(_ transfer: Transfer) {
        guard transfer.state == .running, !transfer.isCancelled else { return }
        let code = transfer.applyPause()
        guard code != CURLE_OK, transfer.state == .running else { return }
        end(transfer, code)
    }

    @inline(__always)
    func calling<Result>(_ body: () -> Result) -> Result {
        callbackDepth += 1
        unsafe handle.silence.pointee.records = 0
        defer { callbackDepth -= 1 }
        return body()
    }

    func judge(_ address: SocketAddress) -> AddressPolicy.Verdict { options.addressPolicy.judge(address) }

    // MARK: Driving libcurl

    private func drive(_ body: () -> Void) {
        guard !isDriving else { return body() }
        isDriving = true
        body()
        kicks.begin(loop.now)
        repeat {
            while isKicked, kicks.areLeft {
                isKicked = false
                kicks.count()
                handle.act(heimdallr_socket_timeout, 0)
            }
            while let transfer = cancelled.popLast() { remove(transfer) }
            while let transfer = unpaused.popLast() { unpause(transfer) }
            handle.sockets.wake()
            while let (owner, code) = unsafe handle.nextResult() {
                if let transfer = unsafe Transfer.from(owner) { end(transfer, code) }
            }
            if hasDeferred {
                hasDeferred = false
                admitWaiting()
            }
        } while isKicked && kicks.areLeft || hasDeferred || !cancelled.isEmpty || !unpaused.isEmpty
            || handle.sockets.hasWoken
        isDriving = false
        if isKicked, !isKickDelayed {
            isKickDelayed = true
            loop.atNextTurn(self)
        }
    }

    /// Limits calls per turn. An exchange needs few calls; one that has more to read than its share would ask without
    /// end.
    private struct Kicks {
        private var turn = LoopTime(nanoseconds: 0)
        private var inTurn = 0
        private var inCall = 0

        mutating func begin(_ now: LoopTime) {
            inCall = 0
            guard turn != now else { return }
            turn = now
            inTurn = 0
        }
        var areLeft: Bool { inCall < 4 && inTurn < 64 }
        mutating func count() {
            inCall += 1
            inTurn += 1
        }
    }

    public func nextTurn() {
        isKickDelayed = false
        if isKicked { drive {} }
    }

    private func end(_ transfer: Transfer, _ code: CURLcode) {
        if lookUpNames(for: transfer, code) { return }
        let error = transfer.error(for: code)
        if options.endsConnected, error == nil { keepConnection(of: transfer) }
        finish(transfer, error)
    }

    func finish(_ transfer: Transfer, _ error: TransportError?) {
        let delegate = transfer.delegate
        remove(transfer, recycling: false)
        delegate?.transferEnded(transfer, error: error)
        retire(transfer)
        admitWaiting()
    }

    /// Duplicates the descriptor: libcurl closes its own with the handle.
    private func keepConnection(of transfer: Transfer) {
        var descriptor: curl_socket_t = -1
        guard
            unsafe heimdallr_easy_get_socket(transfer.easy.pointer, CURLINFO_ACTIVESOCKET, &descriptor) == CURLE_OK,
            descriptor >= 0
        else { return }
        transfer.connection = try? StreamSocket.duplicate(descriptor, loop: loop)
    }

    private func remove(_ transfer: Transfer) { remove(transfer, recycling: true) }

    private func remove(_ transfer: Transfer, recycling: Bool) {
        guard running.removeValue(forKey: ObjectIdentifier(transfer)) != nil else { return }
        detach(transfer)
        if recycling {
            retire(transfer)
            admitWaiting()
        }
    }

    private func retire(_ transfer: Transfer) {
        transfer.recycle()
        if options.http2, idle.count < options.maxConnections { idle.append(transfer) }
    }

    private func admitWaiting() {
        while !waiting.isEmpty, running.count < options.maxConnections {
            let transfer = waiting.remove(at: waiting.firstIndex { $0.delegate?.isWanted == true } ?? 0)
            do throws(TransportError) {
                try add(transfer)
            } catch {
                fail(transfer, error)
            }
        }
    }

    private func expireWaiting() {
        while let transfer = waiting.first, let limit = transfer.waitLimit {
            guard limit <= loop.now else {
                waitTimer?.schedule(at: limit)
                return
            }
            waiting.removeFirst()
            fail(transfer, TransportError(.connectionLimit, message: "no connection became free"))
        }
    }

    private func fail(_ transfer: Transfer, _ error: TransportError) {
        transfer.delegate?.transferEnded(transfer, error: error)
        retire(transfer)
    }

    private func setTimer(_ milliseconds: Int) {
        if milliseconds == 0 {
            isKicked = true
            if !isDriving { timer?.schedule(at: loop.now) }
        } else if milliseconds > 0 {
            timer?.schedule(after: .milliseconds(milliseconds))
        } else {
            timer?.cancel()
        }
    }
}
