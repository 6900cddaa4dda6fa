import CurlTransport
import HTTP2
import HTTPMessage
import HTTPServer
import Reactor

/// An HTTP/1.1 request on a carrier: performs the I/O of `HTTP1Exchange`. `UpstreamStreamPool` reuses it. Loop's thread
/// only.
final class HTTP1UpstreamStream: UpstreamStream, CarrierOwner, NextTurnHandler {
    var isHTTP2: Bool { false }
    var isQueued: Bool { connectionRequest.isQueued }
    var isWanted: Bool { delegate?.isWanted ?? false }
    /// Limit of an answer's bytes read in one turn. A peer that sends as fast as the proxy reads would occupy the loop.
    static let share = 256 * 1024
    /// Limit of bytes in one read. A large read becomes one large write, with fewer acknowledgements and wake-ups.
    static let readLimit = 256 * 1024
    /// Size of a piece of the request's body. The next piece is taken when `output` holds at most `lowWater` bytes.
    static let pieceLimit = 64 * 1024
    static let lowWater = 16 * 1024

    /// State of the two directions of one request.
    struct Flow {
        /// Number of the head's bytes at the front of `output`; zero or less behind the head.
        var unsentHead = 0
        /// Whether the rest of the head waits for room in the socket.
        var headWaits = false
        /// Number of bytes at the front of `input` that the delegate has not taken yet.
        var held = 0
        var isBodyPaused = false
        var isUploadPaused = false
        /// End or failure of the connection, if it was read while earlier bytes were unhandled.
        var unhandledEnd: CarrierReceived?
        /// Whether the upstream ended its side cleanly; `nil` before this end, or while earlier bytes are unhandled.
        var end: Bool?
        /// Whether writing has failed. The upstream's last bytes may still be readable.
        var cannotWrite = false
        /// Whether the program of an upgraded connection ended its side, after the bytes in `output`.
        var isUploadOver = false
    }

    /// End of the exchange.
    struct Over {
        /// Failure of the exchange; `nil` if the answer is complete, or an upgraded connection ended.
        let error: TransportError?

        init(_ error: TransportError? = nil) { self.error = error }

        init(_ kind: TransportError.Kind, _ message: String) { error = TransportError(kind, message: message) }
    }

    unowned let streams: UpstreamStreamPool
    private let connectionRequest = CarrierRequest()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var machine = HTTP1Exchange()
    var request = UpstreamRequest(origin: Origin(scheme: .http, host: "", port: 0))
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var carrier: Carrier?
    /// Receiver of the events; `nil` between two requests.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var delegate: (any UpstreamStreamDelegate)?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var output = ByteBuffer()
    /// Bytes received but not handled: an incomplete line, or bytes that the delegate has not taken.
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

    init(streams: UpstreamStreamPool) { self.streams = streams }

    // MARK: The connection

    /// Begins the request. With an idle connection, sends it at once.
    /// - Returns: the end, if the request ended at once. `upstreamEnded` is then not called.
    func start(
        _ request: consuming UpstreamRequest, over pool: CarrierPool, delegate: any UpstreamStreamDelegate
    ) -> UpstreamEnd? {
        self.request = request
        self.delegate = delegate
        return connect(over: pool).map(leave)
    }

    /// Writes the head on an idle connection, or requests a new connection. Closes idle connections that have ended.
    /// Also closes those that have received bytes, because the bytes would be read as the answer.
    private func connect(over pool: CarrierPool) -> Over? {
        do throws(TransportError) {
            while let carrier = try pool.connect(
                to: request.origin, for: self, connectionRequest, newConnection: request.needsNewConnection,
                use: request.offersUpgrade ? .tunnel : .exchanges, bond: request.bond)
            {
                switch begin(carrier) {
                case .unusable: carrier.close()
                case .begun(let over): return over
                }
            }
            return nil
        } catch {
            return Over(error)
        }
    }

    func carrierArrived(_ carrier: Carrier) {
        switch begin(carrier) {
        case .unusable:
            let pool = carrier.pool
            carrier.close()
            tell(connect(over: pool))
        case .begun(let over): tell(over)
        }
    }

    func carrierFailed(_ error: TransportError) { tell(Over(error)) }

    private enum Beginning {
        /// The exchange needs another connection.
        case unusable
        case begun(Over?)
    }

    private func begin(_ carrier: Carrier) -> Beginning {
        guard let delegate else {
            carrier.close()
            return .begun(nil)
        }
        machine.begin(
            requestWasHead: request.isHead, upload: request.upload, expectsContinue: request.expectsContinue,
            offersUpgrade: request.offersUpgrade)
        var head = ByteBuffer()
        swap(&head, &output)
        head.isSecret = true
        let step = write(&head, carrier, delegate)
        if step != .send { head.removeAll() }
        flow.unsentHead = head.count
        // Only the head holds secrets. The body after it is not wiped.
        head.isSecret = false
        swap(&head, &output)
        switch step {
        case .send: break
        case .withhold:
            carrier.release(to: request.bond)
            return .begun(Over(.withheld, "the request was not sent"))
        case nil: return .unusable
        }
        self.carrier = carrier
        delegate.upstreamConnected(isReused: carrier.isReused)
        return .begun(write(carrier, delegate))
    }

    /// Appends the head. Returns `nil` if the connection is unusable.
    private func write(
        _ head: inout ByteBuffer, _ carrier: Carrier, _ delegate: any UpstreamStreamDelegate
    ) -> HeadStep? {
        let form = HeadForm(isAbsolute: carrier.needsAbsoluteForm, certificateID: carrier.certificateID)
        guard delegate.writeHead(form, to: &head) == .send else { return .withhold }
        frame(&head, carrier)
        // Last check of the connection: bytes that arrive later are read as the answer.
        guard carrier.isUntouched() else { return nil }
        return delegate.hasTokenEnded ? .withhold : .send
    }

    private func frame(_ head: inout ByteBuffer, _ carrier: Carrier) {
        let authorization = carrier.proxyAuthorization
        if !authorization.isEmpty { head.append(line: "Proxy-Authorization: ", authorization) }
        if request.upload == .chunked { head.append("Transfer-Encoding: chunked\r\n") }
        head.append("\r\n")
    }

    func carrierReady(_ carrier: Carrier) {
        // An upgraded upstream has ended its side and the connection broke, so the program's bytes can't be passed on.
        tell(flow.end != nil && carrier.isBroken ? Over() : pump())
    }

    func carrierIsSilent(_ carrier: Carrier) {
        guard let delegate, !machine.isAnswered, delegate.mayReplay else { return }
        tell(Over(.connectionLost, "the server acknowledged nothing of the request"))
    }

    // MARK: Turns

    func goOnNextTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        streams.loop.atNextTurn(self)
    }

    func nextTurn() {
        isTurnScheduled = false
        tell(pump())
    }

    /// Reads first, then writes. An upstream that refuses an upload answers and closes: a write would then cause a
    /// reset, which loses the answer.
    private func pump() -> Over? {
        guard let carrier, let delegate else { return nil }
        return read(carrier, delegate) ?? write(carrier, delegate)
    }

    // MARK: Calls from the delegate's side

    func cancel(_ code: HTTP2Code) {
        guard delegate != nil else { return }
        connectionRequest.cancel()
        _ = leave(Over(.aborted, ""))
    }

    func resumeBody() -> UpstreamEnd? {
        flow.isBodyPaused = false
        return pump().map(leave)
    }

    func resumeUpload() -> UpstreamEnd? {
        flow.isUploadPaused = false
        return pump().map(leave)
    }

    var endsBySides: Bool { carrier?.canShutDownWriting ?? false }

    // MARK: The end

    private func tell(_ over: Over?) {
        guard let over, let delegate else { return }
        delegate.upstreamEnded(leave(over))
    }

    /// Releases the connection, the delegate and the request's secrets. The exchange is then free for another request.
    private func leave(_ over: Over) -> UpstreamEnd {
        var end = UpstreamEnd(error: over.error)
        if let carrier {
            end.wasReused = carrier.isReused
            end.trailers = machine.trailers
            if over.error == nil, !flow.cannotWrite, flow.end == nil, output.isEmpty, machine.keepsConnection {
                carrier.release(to: request.bond)
            } else {
                carrier.close()
            }
        }
        carrier = nil
        delegate = nil
        request.bond = nil
        output.removeAll()
        if output.capacity > 4 * Self.pieceLimit { output.release() }
        input.removeAll()
        if input.capacity > Self.lowWater { input.release() }
        machine.shrink()
        flow = Flow()
        streams.giveBack(self)
        return end
    }
}
