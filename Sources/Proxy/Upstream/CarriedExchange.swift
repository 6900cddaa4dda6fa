import CurlTransport
import HTTPMessage
import Reactor

/// An HTTP/1.1 request on a carrier: performs I/O for `HTTP1Exchange`. Reused: see `ExchangePool`. Loop's thread only.
final class CarriedExchange: UpstreamExchange, CarrierOwner, NextTurnHandler {
    var isHTTP2: Bool { false }
    var isQueued: Bool { place.isQueued }
    var isWanted: Bool { delegate?.isWanted ?? false }
    /// Bytes of an answer read in one turn: a peer may send as fast as the proxy reads.
    private static let share = 256 * 1024
    /// Bytes of one read. A large read becomes one large write, with fewer acknowledgements and wake-ups.
    private static let readLimit = 256 * 1024
    /// Size of one piece of a body. The next one is taken when at most `lowWater` bytes wait.
    private static let pieceLimit = 64 * 1024
    private static let lowWater = 16 * 1024

    private unowned let rack: ExchangeRack
    private let place = CarrierRequest()
    private var machine = HTTP1Exchange()
    private var request = UpstreamRequest(origin: Origin(scheme: .http, host: "", port: 0))
    private var carrier: Carrier?
    private var delegate: (any UpstreamExchangeDelegate)?
    private var output = ByteBuffer()
    /// Bytes received but not handled: an incomplete line, or bytes that the delegate refused.
    private var input = ByteBuffer()
    /// Number of bytes at the front of `input` that are content not yet taken.
    private var held = 0
    private var isBodyPaused = false
    private var isUploadPaused = false
    /// End of the connection, after the bytes in `input`.
    private var last: CarrierReceived?
    /// Whether the peer's end was clean; `nil` before its end.
    private var end: Bool?
    /// Whether the connection refuses further bytes.
    private var isDeaf = false
    /// The client ended its side of another protocol, after the bytes in `output`.
    private var isUploadOver = false
    private var endsWriting = false
    private var uploadShare = TurnShare()
    private var isTurnScheduled = false
    private var isPumping = false

    init(rack: ExchangeRack) { self.rack = rack }

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
            to: request.origin, for: self, place, fresh: request.isFresh, tunnels: request.upload == .upgrade)
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
        if !authorization.isEmpty {
            head.append("Proxy-Authorization: ")
            head.append(authorization)
            head.append("\r\n")
        }
        if request.upload == .chunked { head.append("Transfer-Encoding: chunked\r\n") }
        head.append("\r\n")
    }

    func carrierReady(_ carrier: Carrier) {
        // One side of another protocol has ended, and the other side's bytes can't be passed on.
        if end != nil, carrier.isBroken { finish(nil) } else { pump() }
    }

    func nextTurn() {
        isTurnScheduled = false
        pump()
    }

    private func goOnNextTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        rack.loop.atNextTurn(self)
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

    // MARK: Reading

    private func read() {
        guard !isBodyPaused, end == nil else { return }
        var buffer = ByteBuffer()
        // Exchanges share buffers while none holds bytes.
        if input.isEmpty { rack.lendReceived(&buffer) } else { swap(&buffer, &input) }
        receive(&buffer)
        if carrier == nil { buffer.removeAll() }
        guard !buffer.isEmpty else { return rack.giveBackReceived(&buffer) }
        // A large rest is not copied. Its buffer stays here.
        swap(&buffer, &input)
        guard input.count <= Self.lowWater, input.capacity > Self.readLimit / 2 else { return }
        swap(&buffer, &input)
        input.append(buffer.bytes)
        buffer.removeAll()
        rack.giveBackReceived(&buffer)
    }

    private func receive(_ buffer: inout ByteBuffer) {
        var taken = 0
        if !buffer.isEmpty, !parse(&buffer) { return }
        while let carrier {
            guard taken < Self.share else { return goOnNextTurn() }
            switch receive(into: &buffer, from: carrier) {
            case .bytes(let count):
                taken += count
                guard parse(&buffer) else { return }
            case .wouldBlock: return
            case .end(let isClean):
                end = isClean
                return closed(isClean)
            case .failed(let error): return finish(broken(error))
            }
        }
    }

    /// Reads more records of TLS while they are content, to pass larger pieces on.
    private func receive(into buffer: inout ByteBuffer, from carrier: Carrier) -> CarrierReceived {
        if let last { return last }
        let first = carrier.receive(into: &buffer, limit: Self.readLimit)
        guard carrier.isSecured, case .bytes(var count) = first else { return first }
        while count < Self.readLimit, machine.isContent(buffer.count + 1) {
            let next = carrier.receive(into: &buffer, limit: Self.readLimit - count)
            guard case .bytes(let more) = next else {
                if next != .wouldBlock { last = next }
                break
            }
            count += more
        }
        return .bytes(count)
    }

    /// Handles the bytes in `buffer`. Leaves those that can't be handled yet.
    private func parse(_ buffer: inout ByteBuffer) -> Bool {
        var index = 0
        if held > 0 {
            guard pass(0..<held, of: &buffer) else { return false }
            index = held
            held = 0
        }
        while carrier != nil {
            let event: HTTP1Exchange.Event
            do throws(MessageError) { event = try machine.next(buffer.bytes, from: index) } catch {
                finish(TransportError(.responseMalformed, message: error.detail))
                return false
            }
            switch event {
            case .needMore(let consumed):
                buffer.consume(consumed)
                return true
            case .head(let consumed):
                index = consumed
                guard let delegate, delegate.upstreamAnswered(machine.head) else { return stop() }
            case .content(let range, let consumed):
                guard pass(range.range, of: &buffer) else { return false }
                index = consumed
            case .end(let consumed):
                if consumed < buffer.count { carrier?.forbidReuse() }
                buffer.removeAll()
                if isRequestOver { finish(nil) }
                return carrier != nil && end == nil
            }
        }
        return false
    }

    /// - Returns: whether all bytes were taken and the exchange continues. The rest comes again after `resumeBody`.
    private func pass(_ range: Range<Int>, of buffer: inout ByteBuffer) -> Bool {
        guard let delegate else { return false }
        switch delegate.upstreamSent(buffer.bytes.extracting(range), keepsRest: true) {
        case .taken: return carrier != nil
        case .partly(let count):
            isBodyPaused = carrier != nil
            buffer.consume(range.lowerBound + count)
            held = range.count - count
            return false
        case .abort: return stop()
        }
    }

    private func stop() -> Bool {
        if carrier != nil { finish(TransportError(.aborted, message: "the answer was refused")) }
        return false
    }

    private func closed(_ isClean: Bool) {
        // A clean end of one side of another protocol: the other side continues.
        if machine.isSwitched, isClean, !isUploadOver {
            delegate?.upstreamEndedItsSide()
            return
        }
        switch machine.closed(isClean: isClean) {
        case .whole: finish(nil)
        case .unanswered:
            finish(TransportError(.connectionLost, message: "the connection ended before an answer"))
        case .cut: finish(TransportError(.responseTruncated, message: "the connection ended within the answer"))
        }
    }

    /// Distinguishes a failure before the first byte of the answer from one within it.
    private func broken(_ error: TransportError) -> TransportError? {
        if machine.isSwitched || machine.isWhole { return nil }
        if machine.closed(isClean: false) == .unanswered { return error }
        return TransportError(.responseTruncated, message: error.message)
    }

    // MARK: Writing

    private func write() {
        while let carrier, !isDeaf {
            if machine.wantsUpload, !isUploadPaused, output.count <= Self.lowWater {
                // A client as fast as the upstream must let others have a turn.
                guard hasShareLeft else { return goOnNextTurn() }
                pull()
                guard self.carrier != nil else { return }
            }
            guard !output.isEmpty else { break }
            switch output.withBytes({ carrier.send($0) }) {
            case .bytes(let count): output.consume(count)
            case .wouldBlock: return
            case .failed where end != nil: return finish(nil)
            case .failed:
                // The peer's last bytes may still be readable.
                isDeaf = true
                machine.stopUpload()
                output.removeAll()
                goOnNextTurn()
            }
        }
        if isUploadOver, output.isEmpty, let carrier {
            if endsWriting { carrier.shutdownWriting() }
            if end != nil { return finish(nil) }
        }
        if self.carrier != nil, machine.isWhole, isRequestOver { finish(nil) }
    }

    private var hasShareLeft: Bool {
        let (turn, now) = (rack.loop.now, LoopTime.current())
        return uploadShare.takesMore(turn: turn, now: now)
    }

    /// Whether all of the request was sent, or the rest is not wanted.
    private var isRequestOver: Bool {
        isDeaf || machine.isUploadStopped || machine.isUploadFinished && output.isEmpty
    }

    private func pull() {
        guard let delegate else { return }
        var step = UploadStep.wait
        var buffer = ByteBuffer()
        if request.upload == .chunked { rack.lendPiece(&buffer) } else { swap(&buffer, &output) }
        buffer.append(upTo: machine.room(Self.pieceLimit)) { bytes in
            step = delegate.takeUpload(into: &bytes)
            return if case .bytes(let count) = step { count } else { 0 }
        }
        if request.upload == .chunked {
            HTTP1Exchange.writeChunk(buffer.bytes, to: &output)
            buffer.removeAll()
            rack.giveBackPiece(&buffer)
        } else {
            swap(&buffer, &output)
        }
        guard carrier != nil else { return output.removeAll() }
        switch step {
        case .bytes(let count): machine.sent(count)
        case .wait: isUploadPaused = true
        case .end: endUpload(delegate)
        case .abort: finish(TransportError(.aborted, message: "the request's body ended early"))
        }
    }

    private func endUpload(_ delegate: any UpstreamExchangeDelegate) {
        // The other direction of an upgraded connection continues.
        if machine.isSwitched {
            isUploadPaused = true
            isUploadOver = true
            return
        }
        let trailers = request.upload == .chunked ? delegate.takeTrailers() : []
        guard carrier != nil else { return }
        if !machine.endUpload(trailers: trailers, to: &output) {
            finish(TransportError(.aborted, message: "the request's body ended early"))
        }
    }

    // MARK: For the owner

    var trailers: [(name: [UInt8], value: [UInt8])] { machine.trailers }

    func cancel() {
        guard delegate != nil else { return }
        place.cancel()
        carrier?.close()
        carrier = nil
        delegate = nil
        if !isPumping { leave() }
    }

    func resumeBody() {
        isBodyPaused = false
        pump()
    }

    func resumeUpload() {
        isUploadPaused = false
        pump()
    }

    /// Ends our side after the bytes in `output`.
    func endWriting() -> Bool {
        endsWriting = carrier?.canShutDownWriting ?? false
        return endsWriting
    }

    // MARK: The end

    private func finish(_ error: TransportError?) {
        let delegate = delegate
        self.delegate = nil
        var wasReused = false
        if let carrier {
            wasReused = carrier.isReused
            if error == nil, !isDeaf, end == nil, output.isEmpty, machine.keepsConnection {
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
        held = 0
        isBodyPaused = false
        isUploadPaused = false
        last = nil
        end = nil
        isDeaf = false
        isUploadOver = false
        endsWriting = false
        rack.take(back: self)
    }
}
