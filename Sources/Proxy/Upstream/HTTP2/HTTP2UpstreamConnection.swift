import CurlTransport
import HTTP2
import HTTPMessage
import HTTPServer
import Reactor

/// An HTTP/2 connection to an origin: a session on a carrier, and the exchanges on its streams. Loop's thread only.
///
/// Sends all output of a turn together, at the turn's end. Handles the session's events one by one, never during a
/// call from an exchange's delegate.
final class HTTP2UpstreamConnection: CarrierOwner {
    struct Notes {
        var isFlushing = false
        var isTurnScheduled = false
        var isDispatching = false
        /// Start of the turn in which the connection was read last.
        var lastRead = LoopTime(nanoseconds: 0)
        /// Size of the heads decoded in this turn: a few bytes can stand for large fields.
        var decoded = 0
        /// Number of received bytes, at the end of `input`, that the session has not processed.
        var unprocessed = 0
        /// Time of the last received bytes, or of the last PING sent.
        var heard = LoopTime(nanoseconds: 0)
        /// Time at which the connection became ready.
        var arrived = LoopTime(nanoseconds: 0)
        /// Whether a PING is unanswered. No request begins before its answer.
        var awaitsPong = false
        /// Whether a request has begun here, or the connection has rested.
        var hasWorked = false
        /// Whether the connection takes no further request because the server did not react to an earlier request.
        var isDoubtful = false
        /// Whether an answer has come on this connection.
        var hasServed = false
        /// Whether the socket is full, so that output waits. No request begins then: its token could end in the wait.
        var isBlocked = false
        /// Whether the session may still hold a request's head.
        var hasNewHead = false
    }

    /// Maximum of concurrent streams, even if the server allows more.
    static let maxStreams = 256
    /// Maximum of bytes read, and of bytes written, in one turn.
    static let share = 256 * 1024
    /// Size of writes, into which frames are gathered.
    static let writeSize = 32 * 1024
    /// Limit of a body's piece. The next piece is read when at most a quarter as many bytes wait for the window.
    static let uploadSize = 64 * 1024

    /// Window of a stream: the most that is held of an answer that its program does not take. Wide if the program's
    /// connection agrees. Together they fit into the connection's window, so that no program stops another one's
    /// answer.
    static let streamWindow = 16 << 10
    static let wideWindow = 256 << 10

    /// Must not be used after the connection is lost, because the origin may no longer exist.
    unowned let origin: HTTP2Origin
    let loop: EventLoop
    let buffers: UpstreamStreamPool
    let request = CarrierRequest()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var carrier: Carrier?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var session: HTTP2Session?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var exchanges: [Int32: HTTP2UpstreamStream] = [:]
    /// Streams that want the next piece of their request's body.
    var uploads: [Int32] = []
    /// Received bytes, to which the session's events refer.
    var input = ByteBuffer()
    var output = ByteBuffer()
    /// Number of writes to the carrier.
    var writes: UInt64 = 0
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var notes = Notes()
    var timer: LoopTimer?

    init(_ origin: HTTP2Origin) {
        self.origin = origin
        (loop, buffers) = (origin.loop, origin.buffers)
        timer = LoopTimer(on: origin.loop) { [unowned self] in timePassed() }
    }

    var isReady: Bool { session != nil }
    var hasServed: Bool { notes.hasServed }
    /// The process's own number for the client certificate and key (`TLSMaterial.certificateID`).
    var certificateID: UInt64? { carrier?.certificateID }

    // MARK: The carrier

    var isWanted: Bool { origin.hasWanted }

    func carrierArrived(_ carrier: Carrier) {
        guard carrier.speaksHTTP2 else { return origin.lacksHTTP2(self, carrier) }
        do throws(HTTP2Error) {
            session = try HTTP2Session(.client, Self.settings, spares: origin.spares, at: loop.now)
        } catch {
            carrier.close()
            return origin.failed(self, TransportError(.internal, message: "libnghttp2: out of memory"))
        }
        self.carrier = carrier
        (notes.heard, notes.arrived) = (loop.now, loop.now)
        let early = carrier.takeEarly()
        input.append(early)
        if !early.isEmpty, !feed() { return }
        origin.connectionArrived()
        restIfIdle()
        scheduleFlush()
        pump()
    }

    private static let settings: HTTP2Settings = {
        var settings = HTTP2Settings()
        settings.streamWindow = streamWindow
        settings.connectionWindow = maxStreams * wideWindow
        settings.maxHeaderListBytes = 256 << 10
        settings.maxFields = 1000
        return settings
    }()

    func carrierFailed(_ error: TransportError) { origin.failed(self, error) }

    func carrierReady(_ carrier: Carrier) {
        pump()
        scheduleFlush()
    }

    func carrierIsNeeded(_ carrier: Carrier) { leave() }

    // MARK: Requests

    /// Whether a request may begin on this connection. Checks the socket first for GOAWAY or the connection's end.
    func takesRequest() -> Bool {
        guard let carrier, isReady, carrier.isYoung, !notes.awaitsPong, !notes.isDoubtful, !notes.isBlocked else {
            return false
        }
        if !notes.isDispatching, notes.lastRead != loop.now, carrier.hasNews() {
            receive(carrier)
            // The flush also handles the events, after the current call.
            scheduleFlush()
        }
        guard let session, session.canRequest else { return false }
        guard session.openStreams < (session.hasSettings ? Self.maxStreams : origin.usualStreams) else { return false }
        return isAlive(session)
    }

    /// Opens a stream with the head of a request.
    /// - Parameter text: the head in HTTP/1.1, without the blank line.
    func submit(
        _ text: Span<UInt8>, _ scheme: Scheme, endsStream: Bool, for exchange: HTTP2UpstreamStream
    ) throws(TransportError) -> Int32 {
        let fields = HTTP2FieldList(request: text, scheme)
        do throws(HTTP2Error) {
            guard let session else { throw .failed }
            let stream = try session.request(fields, hasBody: !endsStream)
            exchanges[stream] = exchange
            (notes.hasWorked, notes.hasNewHead) = (true, true)
            if hasServed { carrier?.pool.options.counts?.countReused() }
            output.isSecret = true
            carrier?.wake()
            setTimer()
            scheduleFlush()
            return stream
        } catch {
            throw TransportError(.internal, message: "HTTP/2: \(error)")
        }
    }

    // MARK: Reading

    private func pump() {
        guard !notes.isDispatching else { return }
        dispatch()
        var taken = 0
        notes.decoded = 0
        while let carrier {
            guard taken + notes.decoded < Self.share else { return goOnNextTurn() }
            let count = receive(carrier)
            guard count > 0 else { return }
            taken += count
            dispatch()
        }
    }

    /// Reads once, unless received bytes are still unhandled.
    /// - Returns: number of bytes; 0 if no bytes came or the connection ended.
    @discardableResult private func receive(_ carrier: Carrier) -> Int {
        guard input.isEmpty else { return 0 }
        notes.lastRead = loop.now
        switch carrier.receive(into: &input, limit: Self.share) {
        case .bytes(let count): return feed() ? count : 0
        case .wouldBlock: break
        case .end: lost(TransportError(.connectionLost, message: "the connection ended"))
        case .failed(let error): lost(error)
        }
        return 0
    }

    func handle(_ event: HTTP2Event, _ bytes: Span<UInt8>, _ session: HTTP2Session) {
        switch event {
        case .head(let stream, let block):
            notes.hasServed = true
            exchanges[stream]?.headCame(session.received, block)
        case .interim(let stream, let block): exchanges[stream]?.headCame(session.received, block)
        case .trailers(let stream, let block): exchanges[stream]?.trailersCame(session.received, block)
        case .data(let stream, let range):
            guard let exchange = exchanges[stream] else { return consume(range.count, of: stream) }
            exchange.contentCame(bytes.extracting(range))
        case .ended(let stream): exchanges[stream]?.answerEnded()
        case .closed(let stream, let closing): closed(stream, closing)
        case .settings:
            guard carrier != nil else { return }
            origin.note(streams: session.peersMaxStreams)
            origin.serve()
        case .goAway: restIfIdle()
        case .pong: answered()
        case .room, .sent: break
        }
    }

    private func closed(_ stream: Int32, _ closing: HTTP2Closing) {
        if let exchange = exchanges.removeValue(forKey: stream), !closing.hasEnded {
            exchange.cutOff(
                closing.error, wasRefused: closing.isUnprocessed, code: closing.isReset ? closing.code : nil)
        }
        serveOthers()
        restIfIdle()
    }

    /// Gives free streams to waiting requests.
    func serveOthers() { if carrier != nil { origin.serve() } }

    // MARK: The end

    /// Drops carrier and session, after the origin has gone. The carrier is already being closed.
    func abandon() {
        (carrier, session) = (nil, nil)
        timer?.cancel()
    }

    /// Closes the stream of an exchange that has ended.
    func close(_ stream: Int32, _ code: HTTP2Code) {
        exchanges[stream] = nil
        session?.reset(stream, code)
        scheduleFlush()
    }

    func restIfIdle() {
        guard let carrier, let session, exchanges.isEmpty, session.openStreams == 0 else { return }
        guard carrier.isYoung, session.canRequest, !notes.isDoubtful else { return leave() }
        carrier.rest()
        notes.hasWorked = true
        setTimer()
    }

    /// Sends GOAWAY and closes an idle connection.
    private func leave() {
        try? session?.goAway(.noError)
        lost(TransportError(.connectionLimit, message: "the connection takes no further request"))
    }

    /// Closes the connection and ends all its exchanges.
    func lost(_ error: TransportError) {
        guard let carrier else { return }
        self.carrier = nil
        // Delivers answers that were complete before the end, unless an outer call does this.
        dispatch()
        sendLastWords(carrier)
        session = nil
        timer?.cancel()
        origin.remove(self, error)
        carrier.close()
        let cut = exchanges
        exchanges = [:]
        for exchange in cut.values { exchange.cutOff(error, wasRefused: false) }
        output.removeAll()
    }
}
