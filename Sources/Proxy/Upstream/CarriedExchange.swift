import CurlTransport
import HTTPMessage
import Reactor

/// A request in HTTP/1.1 on a carrier: the thin shell around `HTTP1Exchange`. Used again and again: see `ExchangeRack`.
/// Loop's thread only.
final class CarriedExchange: UpstreamExchange, CarrierOwner, NextTurnHandler {
    /// Of an answer, so much is read in one turn: a peer may send as fast as we read.
    private static let share = 256 * 1024
    private static let readLimit = 64 * 1024
    /// Of a body, one piece; a piece is taken when no more than `lowWater` waits.
    private static let pieceLimit = 64 * 1024
    private static let lowWater = 16 * 1024

    private unowned let rack: ExchangeRack
    private let place = CarrierRequest()
    private var machine = HTTP1Exchange()
    private var request = UpstreamRequest(origin: Origin(scheme: .http, host: "", port: 0))
    private var carrier: Carrier?
    private var delegate: (any UpstreamExchangeDelegate)?
    /// What the connection has not taken yet.
    private var output = ByteBuffer()
    /// What was received and is not done with: the beginning of a line, or what the delegate would not take.
    private var input = ByteBuffer()
    /// So many bytes at the front of `input` are content that was read and not taken.
    private var held = 0
    private var isBodyPaused = false
    private var isUploadPaused = false
    /// The other side has ended, and whether it did so in order.
    private var end: Bool?
    /// The connection takes nothing more.
    private var isDeaf = false
    /// Our side of another protocol ends behind what is in `output`.
    private var endsWriting = false
    private var uploadShare = TurnShare()
    private var isTurnScheduled = false
    /// Within a call that looks at everything there is.
    private var isPumping = false

    init(rack: ExchangeRack) { self.rack = rack }

    /// Begins: at once, where a connection is idle; the delegate is called from within then.
    /// - Throws: `TransportError`; then it never began.
    func start(
        _ request: UpstreamRequest, over pool: CarrierPool, delegate: any UpstreamExchangeDelegate
    ) throws(TransportError) {
        self.request = request
        self.delegate = delegate
        do throws(TransportError) {
            let carrier = try pool.connect(
                to: request.origin, for: self, place, fresh: request.isFresh, tunnels: request.upload == .upgrade)
            if let carrier { begin(carrier) }
        } catch {
            leave()
            throw error
        }
    }

    // MARK: The connection

    func carrierArrived(_ carrier: Carrier) { begin(carrier) }

    func carrierFailed(_ error: TransportError) { finish(error) }

    private func begin(_ carrier: Carrier) {
        guard let delegate else { return carrier.close() }
        self.carrier = carrier
        machine.begin(isHead: request.isHead, upload: request.upload, expectsContinue: request.expectsContinue)
        isPumping = true
        var head = ByteBuffer()
        swap(&head, &output)
        head.isSecret = true
        let step = delegate.writeHead(HeadForm(isAbsolute: carrier.needsAbsoluteForm), to: &head)
        let goesOn = self.carrier != nil && step == .send
        if goesOn { frame(&head, carrier) } else { head.removeAll() }
        // The body behind it is not wiped.
        head.isSecret = false
        swap(&head, &output)
        if goesOn {
            write()
        } else if self.carrier != nil {
            self.carrier = nil
            carrier.release()
            finish(TransportError(.withheld, message: "the request was not sent"))
        }
        isPumping = false
        if self.carrier == nil { leave() }
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

    func carrierReady(_ carrier: Carrier) { pump() }

    func nextTurn() {
        isTurnScheduled = false
        pump()
    }

    private func goOnNextTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        rack.loop.atNextTurn(self)
    }

    /// The answer comes first: a peer that refuses an upload answers and closes, and writing on would lose its answer to
    /// a reset.
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
        guard !isBodyPaused else { return }
        var buffer = ByteBuffer()
        // One buffer serves all exchanges, as long as nothing has to stay in it.
        let isOwn = !input.isEmpty
        if isOwn { swap(&buffer, &input) } else { rack.lendReceived(&buffer) }
        receive(&buffer)
        let isKept = carrier != nil && !buffer.isEmpty
        if isOwn {
            if !isKept { buffer.removeAll() }
            swap(&buffer, &input)
            if !isKept, input.capacity > Self.lowWater { input.release() }
        } else {
            if isKept { input.append(buffer.bytes) }
            buffer.removeAll()
            rack.giveBackReceived(&buffer)
        }
    }

    private func receive(_ buffer: inout ByteBuffer) {
        var taken = 0
        if !buffer.isEmpty, !parse(&buffer) { return }
        while let carrier {
            guard taken < Self.share else { return goOnNextTurn() }
            switch carrier.receive(into: &buffer, limit: Self.readLimit) {
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

    /// Hands on what stands in `buffer` and leaves what can't be handed on.
    /// - Returns: whether more is wanted.
    private func parse(_ buffer: inout ByteBuffer) -> Bool {
        var index = 0
        if held > 0 {
            guard pass(buffer.bytes.extracting(0..<held)) else { return false }
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
                guard pass(buffer.bytes.extracting(range.range)) else {
                    // Comes again after `resumeBody`.
                    buffer.consume(Int(range.start))
                    held = range.count
                    return false
                }
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

    /// - Returns: whether it was taken, and the exchange goes on.
    private func pass(_ bytes: Span<UInt8>) -> Bool {
        guard let delegate else { return false }
        switch delegate.upstreamSent(bytes) {
        case .taken: return carrier != nil
        case .pause:
            isBodyPaused = carrier != nil
            return false
        case .abort: return stop()
        }
    }

    private func stop() -> Bool {
        if carrier != nil { finish(TransportError(.aborted, message: "the answer was refused")) }
        return false
    }

    private func closed(_ isClean: Bool) {
        switch machine.closed(isClean: isClean) {
        case .whole: finish(nil)
        case .unanswered:
            finish(TransportError(.connectionLost, message: "the connection ended before an answer"))
        case .cut: finish(TransportError(.responseTruncated, message: "the connection ended within the answer"))
        }
    }

    /// A connection that broke before the first byte of an answer is another case than one that broke within it.
    private func broken(_ error: TransportError) -> TransportError? {
        if machine.isSwitched || machine.isWhole { return nil }
        if machine.closed(isClean: false) == .unanswered { return error }
        return TransportError(.responseTruncated, message: error.message)
    }

    // MARK: Writing

    private func write() {
        while let carrier, !isDeaf {
            if machine.wantsUpload, !isUploadPaused, output.count <= Self.lowWater {
                // Whoever sends as fast as the upstream takes it lets others have their turn.
                guard uploadShare.takesMore(in: rack.loop) else { return goOnNextTurn() }
                pull()
                guard self.carrier != nil else { return }
            }
            guard !output.isEmpty else { break }
            switch output.withBytes({ carrier.send($0) }) {
            case .bytes(let count): output.consume(count)
            case .wouldBlock: return
            case .failed:
                // What the other side said before it left may still be there.
                isDeaf = true
                machine.stopUpload()
                output.removeAll()
                goOnNextTurn()
            }
        }
        if endsWriting, output.isEmpty, let carrier { _ = carrier.shutdownWriting() }
        if self.carrier != nil, machine.isWhole, isRequestOver { finish(nil) }
    }

    /// Nothing more of the request goes out.
    private var isRequestOver: Bool {
        isDeaf || machine.isUploadStopped || machine.isUploadFinished && output.isEmpty
    }

    /// Takes the next piece of the request's body.
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
        // The other direction of an upgraded connection goes on.
        if machine.isSwitched { return isUploadPaused = true }
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

    /// Behind what is on its way still.
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

    /// Forgets its owner and what was secret in the request, and is free for another.
    private func leave() {
        delegate = nil
        output.removeAll()
        if output.capacity > 4 * Self.pieceLimit { output.release() }
        input.removeAll()
        if input.capacity > Self.lowWater { input.release() }
        held = 0
        isBodyPaused = false
        isUploadPaused = false
        end = nil
        isDeaf = false
        endsWriting = false
        rack.take(back: self)
    }
}
