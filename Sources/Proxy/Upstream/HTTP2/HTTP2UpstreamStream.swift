import CurlTransport
import HTTP2
import HTTPMessage
import HTTPServer
import Reactor

/// A request on a stream of an HTTP/2 connection. Loop's thread only.
final class HTTP2UpstreamStream: UpstreamStream {
    enum State {
        case none
        /// Waiting in the queue of the origin.
        case waiting(HTTP2Origin)
        case open(HTTP2UpstreamConnection, stream: Int32)
    }

    /// Progress of the request's body.
    enum Upload {
        /// - Parameter left: number of bytes still to come; `nil` if unknown. Then the program marks the end.
        case content(left: UInt64?)
        case finished
    }

    let request: UpstreamRequest
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var delegate: (any UpstreamStreamDelegate)?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var state = State.none
    /// Position among the requests that wait for a stream. `began` and `deadline` are the wait's start and limit.
    private(set) var number: UInt64 = 0
    private(set) var began = LoopTime(nanoseconds: 0)
    private(set) var deadline = LoopTime(nanoseconds: 0)
    private var answer: HTTP2Answer
    private var upload = Upload.finished
    private var isUploadPaused = false
    private var share = TurnShare()
    /// Content that the delegate has not taken. The stream's receive window limits the size of this buffer.
    private var held = ByteBuffer()
    /// Bytes that the delegate has taken since it was asked for the wide window; `nil` once the stream has that.
    private var taken: Int? = 0
    /// End of the answer, or its cut, if it came while `held` had bytes. The delegate gets these bytes first.
    private var end: UpstreamEnd?
    /// When the head was handed to the connection: the time, and `HTTP2UpstreamConnection.writes`. An unchanged number
    /// of writes means that the head was never sent.
    private var submitted = (at: LoopTime(nanoseconds: 0), writes: UInt64(0))
    /// Whether the connection had served earlier requests.
    private var wasReused = false

    init(_ request: UpstreamRequest, _ delegate: any UpstreamStreamDelegate) {
        self.request = request
        self.delegate = delegate
        answer = HTTP2Answer(requestWasHead: request.isHead)
        switch request.upload {
        case .length(let count) where count > 0: upload = .content(left: count)
        case .chunked: upload = .content(left: nil)
        default: break
        }
    }

    // MARK: For the owner

    var isHTTP2: Bool { true }

    var isQueued: Bool { if case .waiting(let origin) = state { origin.isQueued } else { false } }

    var isWanted: Bool { delegate?.isWanted ?? false }

    var endsBySides: Bool { false }

    func cancel(_ code: HTTP2Code) {
        guard delegate != nil else { return }
        if case .open(let connection, _) = state, !answer.hasBegun { connection.gotNoAnswer(since: submitted.at) }
        _ = leave(UpstreamEnd(error: Self.aborted), code: code)
    }

    func resumeBody() -> UpstreamEnd? {
        guard let delegate, !held.isEmpty else { return nil }
        var content = ByteBuffer()
        swap(&content, &held)
        let taking = content.withBytes { delegate.upstreamSent($0) }
        switch taking {
        case .taken:
            consume(content.count)
            widen(after: content.count)
            return end.map { leave($0) }
        case .partly(let count):
            consume(count)
            content.consume(count)
            swap(&content, &held)
            return nil
        case .abort: return leave(UpstreamEnd(error: Self.aborted), code: .cancel)
        }
    }

    /// Resumes the upload. The connection reads the body at the turn's end.
    func resumeUpload() -> UpstreamEnd? {
        isUploadPaused = false
        if case .open(let connection, let stream) = state { connection.wantsUpload(stream) }
        return nil
    }

    /// Size of a head whose memory is kept until the exchange ends, although the head has been passed on.
    private static let keptHead = 8 << 10
    private static let noHead = TransportError(.responseMalformed, message: "the answer has no final head")
    private static let aborted = TransportError(.aborted, message: "the exchange was ended")

    // MARK: For its origin

    func wait(at origin: HTTP2Origin, number: UInt64, from began: LoopTime, until deadline: LoopTime) {
        state = .waiting(origin)
        (self.number, self.began, self.deadline) = (number, began, deadline)
    }

    /// Waits for another stream: the head was not sent, and no byte of the body was read.
    func goBack(to origin: HTTP2Origin) {
        state = .none
        origin.queue(self)
    }

    /// Ends the exchange without a call to the delegate.
    func end(with error: TransportError) -> UpstreamEnd {
        state = .none
        return leave(UpstreamEnd(error: error))
    }

    /// Sends the head on a connection that has room.
    /// - Throws: error if nothing was sent. The caller then ends the exchange, by `end(with:)` or `tell`.
    func open(on connection: HTTP2UpstreamConnection) throws(TransportError) {
        guard let delegate else { return }
        state = .none
        var text = ByteBuffer(isSecret: true)
        let form = HeadForm(isHTTP2: true, certificateID: connection.certificateID)
        guard delegate.writeHead(form, to: &text) == .send, !delegate.hasTokenEnded else {
            throw TransportError(.withheld, message: "the request was not sent")
        }
        var hasBody = false
        if case .content = upload { hasBody = true }
        let stream = try connection.submit(text.bytes, request.origin.scheme, endsStream: !hasBody, for: self)
        state = .open(connection, stream: stream)
        wasReused = connection.hasServed
        submitted = (connection.loop.now, connection.writes)
        delegate.upstreamConnected(isReused: wasReused)
        widen(after: HTTP2UpstreamConnection.wideWindow)
        if hasBody, case .open(_, let stream) = state { connection.wantsUpload(stream) }
    }

    /// Ends the exchange and tells the delegate.
    /// - Parameter code: code of RST_STREAM.
    func tell(_ error: TransportError, code: HTTP2Code = .cancel) {
        tell(UpstreamEnd(error: error, wasReused: wasReused), code: code)
    }

    func tell(_ end: UpstreamEnd, code: HTTP2Code = .noError) {
        guard let delegate else { return }
        delegate.upstreamEnded(leave(end, code: code))
    }

    // MARK: For its connection

    /// Whether another connection may serve this request if its own does not live.
    var mayMove: Bool { wasReused && !answer.hasBegun && delegate?.mayReplay == true }

    func headCame(_ fields: borrowing HTTP2FieldList, _ block: HTTP2Block) {
        guard let delegate else { return }
        do throws(MessageError) { try answer.read(fields, block) } catch {
            return tell(Self.malformed(error), code: .protocolError)
        }
        guard answer.withHead({ delegate.upstreamAnswered($0) }) else { return tell(Self.aborted) }
        if block.size > Self.keptHead { answer.dropHead() }
    }

    func contentCame(_ bytes: Span<UInt8>) {
        guard let delegate, end == nil else { return consume(bytes.count) }
        guard answer.isHeadComplete else {
            consume(bytes.count)
            return tell(Self.noHead, code: .protocolError)
        }
        guard held.isEmpty else { return held.append(bytes) }
        switch delegate.upstreamSent(bytes) {
        case .taken:
            consume(bytes.count)
            widen(after: bytes.count)
        case .partly(let count):
            held.append(bytes.extracting(count...))
            consume(count)
        case .abort:
            consume(bytes.count)
            tell(Self.aborted)
        }
    }

    func trailersCame(_ fields: borrowing HTTP2FieldList, _ block: HTTP2Block) {
        do throws(MessageError) { try answer.read(trailers: fields, block) } catch {
            finish(UpstreamEnd(error: Self.malformed(error), wasReused: wasReused))
        }
    }

    /// Handles END_STREAM. The rest of the request's body is not sent.
    func answerEnded() {
        guard answer.isHeadComplete else {
            return tell(Self.noHead)
        }
        finish(UpstreamEnd(wasReused: wasReused, trailers: answer.trailers))
    }

    /// Tells the delegate of the end, behind the content that it has not taken yet.
    private func finish(_ end: UpstreamEnd) {
        guard self.end == nil else { return }
        if held.isEmpty { tell(end) } else { self.end = end }
    }

    /// Handles the end of a stream without END_STREAM.
    /// - Parameters:
    ///   - error: error to report if no answer has begun. Otherwise the answer is reported as truncated.
    ///   - wasRefused: whether the upstream says that it has not processed the request.
    ///   - code: code of the upstream's RST_STREAM.
    func cutOff(_ error: TransportError, wasRefused: Bool, code: HTTP2Code? = nil) {
        var cut = UpstreamEnd(error: error, wasReused: wasReused)
        cut.code = code
        if isUnsent {
            cut.isUnprocessed = true
        } else if answer.hasBegun {
            cut.error = TransportError(.responseTruncated, message: error.message)
        } else {
            cut.isUnprocessed = wasRefused
        }
        finish(cut)
    }

    /// Whether the request's head was never sent.
    var isUnsent: Bool {
        if case .open(let connection, _) = state { submitted.writes == connection.writes } else { false }
    }

    /// Moves pieces of the request's body to the stream.
    /// - Returns: whether to call again, because the stream has no room or the turn's share is used up.
    func giveUpload(_ connection: HTTP2UpstreamConnection, _ stream: Int32, turn: LoopTime) -> Bool {
        while let delegate, case .content(let left) = upload, !isUploadPaused, end == nil {
            guard connection.hasRoom(on: stream) else { return true }
            // If program and upstream are equally fast, this loop would not end, and other exchanges would wait.
            guard share.takesMore(turn: turn, now: .current()) else {
                connection.goOnNextTurn()
                return true
            }
            switch connection.take(from: delegate, for: stream, atMost: left) {
            case .bytes(let count):
                guard let left else { break }
                upload = .content(left: left - UInt64(count))
                if left == UInt64(count) { finishUpload(connection, stream, trailers: []) }
            case .wait: isUploadPaused = true
            case .end where left == nil: finishUpload(connection, stream, trailers: delegate.takeTrailers())
            case .end, .abort: tell(TransportError(.aborted, message: "the request's body ended early"))
            }
        }
        return false
    }

    private func finishUpload(
        _ connection: HTTP2UpstreamConnection, _ stream: Int32, trailers: [(name: [UInt8], value: [UInt8])]
    ) {
        upload = .finished
        connection.endUpload(stream, trailers: trailers)
    }

    private static func malformed(_ error: MessageError) -> TransportError {
        TransportError(.responseMalformed, message: error.detail)
    }

    // MARK: The end

    /// Asks the delegate for the wide window at the start, and from time to time while it takes all that comes.
    private func widen(after count: Int) {
        guard let former = taken, let delegate, case .open(let connection, let stream) = state else { return }
        taken = former + count
        guard former + count >= HTTP2UpstreamConnection.wideWindow / 4 else { return }
        taken = delegate.mayReadAhead() ? nil : 0
        if taken == nil { connection.session?.widen(stream, to: HTTP2UpstreamConnection.wideWindow) }
    }

    private func consume(_ count: Int) {
        if case .open(let connection, let stream) = state { connection.consume(count, of: stream) }
    }

    /// Releases the stream and the delegate.
    /// - Parameter code: code of RST_STREAM, which is sent unless both sides have ended.
    private func leave(_ end: UpstreamEnd, code: HTTP2Code = .noError) -> UpstreamEnd {
        delegate = nil
        held.release()
        switch state {
        case .none: break
        case .waiting(let origin): origin.remove(self)
        case .open(let connection, let stream): connection.close(stream, code)
        }
        state = .none
        return end
    }
}
