import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor

/// An HTTP/1.1 request on a carrier: performs I/O for `HTTP1Exchange`. Reused: see `ExchangePool`. Loop's thread only.
final class CarriedExchange: UpstreamExchange, CarrierOwner, NextTurnHandler {
    var isHTTP2: Bool { false }
    var isQueued: Bool { connectionRequest.isQueued }
    var isWanted: Bool { delegate?.isWanted ?? false }
    /// Bytes of an answer read in one turn: a peer may send as fast as the proxy reads.
    static let share = 256 * 1024
    /// Bytes of one read. A large read becomes one large write, with fewer acknowledgements and wake-ups.
    static let readLimit = 256 * 1024
    /// Size of one piece of a body. The next one is taken when at most `lowWater` bytes wait.
    static let pieceLimit = 64 * 1024
    static let lowWater = 16 * 1024

    /// The two directions of one request.
    struct Flow {
        /// Number of bytes at the front of `input` that are content not yet taken.
        var held = 0
        var isBodyPaused = false
        var isUploadPaused = false
        /// End of the connection, after the bytes in `input`.
        var last: CarrierReceived?
        /// Whether the peer's end was clean; `nil` before its end.
        var end: Bool?
        /// Whether the connection refuses further bytes.
        var isDeaf = false
        /// The client ended its side of another protocol, after the bytes in `output`.
        var isUploadOver = false
        var endsWriting = false
    }

    unowned let exchanges: ExchangePool
    private let connectionRequest = CarrierRequest()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var machine = HTTP1Exchange()
    var request = UpstreamRequest(origin: Origin(scheme: .http, host: "", port: 0))
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var carrier: Carrier?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var delegate: (any UpstreamExchangeDelegate)?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var output = ByteBuffer()
    /// Bytes received but not handled: an incomplete line, or bytes that the delegate refused.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var input = ByteBuffer()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var flow = Flow()
    var uploadShare = TurnShare()
    private var isTurnScheduled = false
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var isPumping = false

    init(exchanges: ExchangePool) { self.exchanges = exchanges }

    /// Begins, at once on an idle connection; then it calls the delegate from within.
    /// - Throws: `TransportError` when it could not begin.
    func start(
        _ request: UpstreamRequest, over pool: CarrierPool, delegate: any UpstreamExchangeDelegate
    ) throws(TransportError) {
        self.request = request
        self.delegate = delegate
        do throws(TransportError) {
            try connect(over: pool)
        } catch {
            leave()
            throw error
        }
    }

    /// Writes the head on an idle connection, or requests a new one. Closes a connection that ended or sent bytes while
    /// idle: its bytes would be taken for the answer.
    private func connect(over pool: CarrierPool) throws(TransportError) {
        while let carrier = try pool.connect(
            to: request.origin, for: self, connectionRequest, fresh: request.isFresh,
            tunnels: request.upload == .upgrade)
        {
            if begin(carrier) { return }
        }
    }

    // MARK: The connection

    func carrierArrived(_ carrier: Carrier) {
        guard !begin(carrier) else { return }
        do throws(TransportError) {
            try connect(over: carrier.pool)
        } catch {
            finish(error)
        }
    }

    func carrierFailed(_ error: TransportError) { finish(error) }

    /// - Returns: `false` when `carrier` was unusable and is closed. The exchange then needs another.
    private func begin(_ carrier: Carrier) -> Bool {
        guard let delegate else {
            carrier.close()
            return true
        }
        self.carrier = carrier
        machine.begin(isHead: request.isHead, upload: request.upload, expectsContinue: request.expectsContinue)
        isPumping = true
        var head = ByteBuffer()
        swap(&head, &output)
        head.isSecret = true
        let step = delegate.writeHead(HeadForm(isAbsolute: carrier.needsAbsoluteForm, pair: carrier.pair), to: &head)
        let goesOn = self.carrier != nil && step == .send
        if goesOn { frame(&head, carrier) }
        // The last check: a later byte is taken for the answer.
        let isOfUse = !goesOn || carrier.isUntouched()
        let isSent = goesOn && isOfUse && !delegate.hasTokenEnded
        if isSent { delegate.upstreamConnected(isReused: carrier.isReused) } else { head.removeAll() }
        // The body after the head is not wiped.
        head.isSecret = false
        swap(&head, &output)
        if !isOfUse {
            self.carrier = nil
            isPumping = false
            carrier.close()
            return false
        }
        if isSent {
            write()
        } else if self.carrier != nil {
            self.carrier = nil
            carrier.release()
            finish(TransportError(.withheld, message: "the request was not sent"))
        }
        isPumping = false
        if self.carrier == nil { leave() }
        return true
    }

    private func frame(_ head: inout ByteBuffer, _ carrier: Carrier) {
        let authorization = carrier.proxyAuthorization
        if !authorization.isEmpty { head.append(line: "Proxy-Authorization: ", authorization) }
        if request.upload == .chunked { head.append("Transfer-Encoding: chunked\r\n") }
        head.append("\r\n")
    }

    func carrierReady(_ carrier: Carrier) {
        // One side of another protocol has ended, and the other side's bytes can't be passed on.
        if flow.end != nil, carrier.isBroken { finish(nil) } else { pump() }
    }

    func nextTurn() {
        isTurnScheduled = false
        pump()
    }

    func goOnNextTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        exchanges.loop.atNextTurn(self)
    }

    /// Reads before it writes: a peer that refuses an upload answers and closes, and further writes would lose its
    /// answer to a reset.
    private func pump() {
        guard !isPumping, carrier != nil else { return }
        isPumping = true
        read()
        if carrier != nil { write() }
        isPumping = false
        if carrier == nil { leave() }
    }

    // MARK: For the owner

    var trailers: [(name: [UInt8], value: [UInt8])] { machine.trailers }

    func cancel() {
        guard delegate != nil else { return }
        connectionRequest.cancel()
        carrier?.close()
        carrier = nil
        delegate = nil
        if !isPumping { leave() }
    }

    func resumeBody() {
        flow.isBodyPaused = false
        pump()
    }

    func resumeUpload() {
        flow.isUploadPaused = false
        pump()
    }

    /// Ends our side after the bytes in `output`.
    func endWriting() -> Bool {
        flow.endsWriting = carrier?.canShutDownWriting ?? false
        return flow.endsWriting
    }

    // MARK: The end

    func finish(_ error: TransportError?) {
        let delegate = delegate
        self.delegate = nil
        var wasReused = false
        if let carrier {
            wasReused = carrier.isReused
            if error == nil, !flow.isDeaf, flow.end == nil, output.isEmpty, machine.keepsConnection {
                carrier.release()
            } else {
                carrier.close()
            }
        }
        carrier = nil
        delegate?.upstreamEnded(error, wasReused: wasReused)
        if !isPumping { leave() }
    }

    /// Drops its owner and the request's secrets. It is then free for another request.
    private func leave() {
        delegate = nil
        output.removeAll()
        if output.capacity > 4 * Self.pieceLimit { output.release() }
        input.removeAll()
        if input.capacity > Self.lowWater { input.release() }
        machine.shrink()
        flow = Flow()
        exchanges.giveBack(self)
    }
}
