import CurlTransport
import HTTPMessage
import Reactor

/// A request that libcurl's own engine carries, for `http2: true`: over HTTP/2, or HTTP/1.1 where the upstream knows no
/// other. What is here for HTTP/1.1 watches what that engine takes for an answer. Loop's thread only.
final class TransferredExchange: UpstreamExchange {
    private static let maxTrailerBytes = 16 * 1024

    private let transfer: Transfer
    private let request: UpstreamRequest
    private let form: HeadForm
    private var delegate: (any UpstreamExchangeDelegate)?
    private var head = ResponseHead()
    private var isHeadComplete = false
    private var interim = 0
    private var decoder = ChunkedDecoder()
    private var lateTrailers: [(name: [UInt8], value: [UInt8])] = []
    private var trailerBytes = 0
    private var taken: UInt64 = 0
    private var uploaded: UInt64 = 0
    private var isUploadOver = false

    /// Asks the delegate for the request's head and hands it to libcurl.
    ///
    /// - Parameter isAbsolute: a proxy in between reads the target.
    /// - Throws: `TransportError`; then it never began.
    init(
        _ request: UpstreamRequest, over pool: ConnectionPool, isAbsolute: Bool,
        delegate: any UpstreamExchangeDelegate
    ) throws(TransportError) {
        self.request = request
        form = HeadForm(isAbsolute: isAbsolute)
        var text = ByteBuffer(isSecret: true)
        guard case .send = delegate.writeHead(form, to: &text) else {
            throw TransportError(.withheld, message: "the request was not sent")
        }
        transfer = try pool.acquire()
        self.delegate = delegate
        head.reset(requestWasHead: request.isHead)
        isUploadOver = request.upload == .noBody || request.upload == .known(0)
        do throws(TransportError) {
            try Self.fill(transfer, text.bytes) { line, method, target throws(TransportError) in
                try transfer.prepare(
                    origin: request.origin, method: line.extracting(method), target: line.extracting(target),
                    isHead: request.isHead, upload: request.upload)
            }
        } catch {
            transfer.cancel()
            throw error
        }
    }

    func start() throws(TransportError) { try transfer.start(delegate: self, fresh: request.isFresh) }

    /// Hands the lines of a head over, which are well-formed: it is we who wrote them.
    private static func fill(
        _ transfer: Transfer, _ head: Span<UInt8>,
        first: (Span<UInt8>, _ method: Range<Int>, _ target: Range<Int>) throws(TransportError) -> Void
    ) throws(TransportError) {
        var start = 0
        var isFirst = true
        while start < head.count {
            let end = position(of: UInt8(ascii: "\r"), in: head, from: start)
            let line = head.extracting(start..<end)
            start = end + 2
            if isFirst {
                isFirst = false
                let method = position(of: UInt8(ascii: " "), in: line, from: 0)
                let target = position(of: UInt8(ascii: " "), in: line, from: method + 1)
                try first(line, 0..<method, (method + 1)..<target)
                continue
            }
            let colon = position(of: UInt8(ascii: ":"), in: line, from: 0)
            transfer.append(
                name: line.extracting(0..<colon), value: line.extracting(min(colon + 2, line.count)..<line.count))
        }
    }

    private static func position(of byte: UInt8, in line: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index < line.count, line[index] != byte { index += 1 }
        return index
    }

    // MARK: For the owner

    func cancel() {
        delegate = nil
        transfer.cancel()
    }

    func resumeBody() { transfer.resumeBody() }
    func resumeUpload() { transfer.resumeUpload() }
    func endWriting() -> Bool { transfer.endWriting() }

    var trailers: [(name: [UInt8], value: [UInt8])] {
        lateTrailers + decoder.trailers.filter { !head.connectionNames($0.name.span) }
    }

    /// From within libcurl: it is told to give up, and the delegate what for.
    /// - Returns: false.
    private func finish(_ error: TransportError?) -> Bool {
        let delegate = delegate
        cancel()
        delegate?.upstreamEnded(error, wasReused: false)
        return false
    }

    private func refuse(_ error: MessageError) -> Bool {
        finish(TransportError(.responseMalformed, message: error.detail))
    }
}

extension TransferredExchange: TransferDelegate {
    func transferWillSend(_ transfer: Transfer) -> Bool {
        guard let delegate else { return false }
        switch delegate.lastLook() {
        case .unchanged: return true
        case .withhold: return false
        case .changed: break
        }
        var text = ByteBuffer(isSecret: true)
        guard case .send = delegate.writeHead(form, to: &text) else { return false }
        do throws(TransportError) {
            try Self.fill(transfer, text.bytes) { line, _, target throws(TransportError) in
                guard transfer.beginAgain(target: line.extracting(target)) else {
                    throw TransportError(.internal, message: "the request's target can't be changed any more")
                }
            }
            try transfer.commitFields()
        } catch {
            return false
        }
        return true
    }

    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool {
        if isHeadComplete { return takeTrailer(headerLine) }
        do throws(MessageError) {
            guard try head.append(line: headerLine, allowHTTP2: transfer.isHTTP2) else { return true }
        } catch {
            return refuse(error)
        }
        guard let delegate, delegate.upstreamAnswered(head), self.delegate != nil else { return false }
        if head.isInterim {
            interim += 1
            guard interim <= HTTP1Exchange.maxInterim else {
                return refuse(MessageError(status: 502, detail: "There are too many interim answers."))
            }
            head.reset(requestWasHead: request.isHead)
            return true
        }
        isHeadComplete = true
        if head.status == 101 { return true }
        // The upstream still waits for a body that was announced to it: its connection is of no use any more.
        if request.expectsContinue, !isUploadOver { transfer.forbidReuse() }
        if head.framing == .none || head.framing == .length(0), !head.isHTTP2 { transfer.expectNoBody() }
        if head.framing == .untilClose { transfer.expectClose() }
        return goesOn(after: 0)
    }

    /// libcurl does not see that an answer is whole while a request's body is still to be sent: over HTTP/2, or after
    /// HEAD, it would wait for ever. Ends it here when `count` more bytes make it whole.
    private func goesOn(after count: Int) -> Bool {
        guard request.upload != .noBody, request.upload != .upgrade else { return true }
        taken += UInt64(count)
        switch head.framing {
        case .none: guard request.isHead || transfer.isHTTP2 else { return true }
        case .length(let length): guard transfer.isHTTP2, taken >= length else { return true }
        case .chunked, .untilClose: return true
        }
        return finish(nil)
    }

    func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep {
        guard isHeadComplete, let delegate else { return .abort }
        guard head.status != 101, head.framing == .chunked else {
            let step = delegate.upstreamSent(body)
            guard case .taken = step, self.delegate != nil else { return step }
            return head.status == 101 || goesOn(after: body.count) ? .taken : .abort
        }
        return takeChunks(body, delegate)
    }

    /// Reads what libcurl has only counted: it takes sizes with spaces behind them, lines that end in a bare LF, and
    /// throws away what follows the last chunk.
    private func takeChunks(_ bytes: Span<UInt8>, _ delegate: any UpstreamExchangeDelegate) -> BodyStep {
        // After a pause the same bytes come again.
        let before = decoder
        var content = ByteBuffer()
        var index = 0
        decoding: while true {
            do throws(MessageError) {
                switch try decoder.next(bytes, from: index) {
                case .needMore: break decoding
                case .data(let range, let consumed):
                    content.append(bytes.extracting(range.range))
                    index = consumed
                case .end(let consumed):
                    if consumed < bytes.count { transfer.forbidReuse() }
                    break decoding
                }
            } catch {
                return refuse(error) ? .taken : .abort
            }
        }
        guard !content.isEmpty else { return .taken }
        let step = delegate.upstreamSent(content.bytes)
        if case .pause = step { decoder = before }
        return step
    }

    private func takeTrailer(_ line: Span<UInt8>) -> Bool {
        do throws(MessageError) {
            switch try ResponseTrailer.check(line: line) {
            case .field(let name, let value):
                if head.connectionNames(line.extracting(name.range)) { return true }
                trailerBytes += line.count
                guard trailerBytes <= Self.maxTrailerBytes else {
                    throw MessageError(status: 502, detail: "The trailers are too large.")
                }
                lateTrailers.append((Self.copy(line, name), Self.copy(line, value)))
            case .forbidden, .end: break
            }
            return true
        } catch {
            return refuse(error)
        }
    }

    private static func copy(_ line: Span<UInt8>, _ range: ByteRange) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in range.range { bytes.append(line[index]) }
        return bytes
    }

    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep {
        guard let delegate else { return .abort }
        // The answer to an upgrade was no: there is nothing to send.
        if request.upload == .upgrade, head.status != 101 { return isHeadComplete ? .end : .wait }
        let step = delegate.takeUpload(into: &upload)
        switch step {
        case .bytes(let count):
            uploaded += UInt64(count)
            if request.upload == .known(uploaded) { isUploadOver = true }
        case .end: isUploadOver = true
        case .wait, .abort: break
        }
        return step
    }

    func requestTrailers(_ transfer: Transfer) -> [(name: [UInt8], value: [UInt8])] { delegate?.takeTrailers() ?? [] }

    func transferEnded(_ transfer: Transfer, error: TransportError?) {
        let delegate = delegate
        self.delegate = nil
        var error = error
        if error == nil, !isHeadComplete {
            error = TransportError(.responseTruncated, message: "the connection ended within the answer's head")
        } else if error == nil, head.framing == .chunked, !head.isHTTP2, !decoder.isEnded {
            error = TransportError(.responseTruncated, message: "the connection ended within the answer")
        }
        delegate?.upstreamEnded(error, wasReused: transfer.wasReused)
    }
}
