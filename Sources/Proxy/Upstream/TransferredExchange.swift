import CurlTransport
import HTTPMessage
import Reactor
import WireText

/// An HTTP/2 request, carried by libcurl's own engine. Loop's thread only.
final class TransferredExchange: UpstreamStream {
    var isHTTP2: Bool { true }
    var isQueued: Bool { transfer.isQueued }
    var isWanted: Bool { delegate?.isWanted ?? false }
    private static let maxTrailerBytes = 16 * 1024

    private let transfer: Transfer
    private let request: UpstreamRequest
    private var delegate: (any UpstreamStreamDelegate)?
    private var head = ResponseHead()
    private var isHeadComplete = false
    private var interim = 0
    private var trailers: [(name: [UInt8], value: [UInt8])] = []
    private var trailerBytes = 0
    private var taken: UInt64 = 0

    /// Gets the request's head from the delegate and passes it to libcurl.
    /// - Throws: `TransportError` when it could not begin.
    init(
        _ request: UpstreamRequest, over pool: ConnectionPool, delegate: any UpstreamStreamDelegate
    ) throws(TransportError) {
        self.request = request
        var text = ByteBuffer(isSecret: true)
        guard case .send = delegate.writeHead(HeadForm(isHTTP2: true), to: &text) else {
            throw TransportError(.withheld, message: "the request was not sent")
        }
        transfer = try pool.acquire()
        self.delegate = delegate
        head.reset(requestWasHead: request.isHead)
        do throws(TransportError) {
            let head = OutgoingHead(text.bytes)
            try transfer.prepare(
                origin: request.origin, method: head.method, target: head.target, isHead: request.isHead,
                upload: request.upload.length)
            head.forEachField { transfer.append(name: $0, value: $1) }
        } catch {
            transfer.cancel()
            throw error
        }
    }

    func start() throws(TransportError) { try transfer.start(delegate: self, fresh: request.isFresh) }

    // MARK: For the owner

    func cancel() {
        delegate = nil
        transfer.cancel()
    }

    var endsBySides: Bool { false }

    // The end comes from within libcurl, by `upstreamEnded`.

    func resumeBody() -> UpstreamEnd? {
        transfer.resumeBody()
        return nil
    }

    func resumeUpload() -> UpstreamEnd? {
        transfer.resumeUpload()
        return nil
    }

    /// Ends the exchange from within a callback of libcurl, and tells the delegate.
    /// - Returns: `false`, for libcurl.
    private func finish(_ error: TransportError?) -> Bool {
        let delegate = delegate
        cancel()
        delegate?.upstreamEnded(UpstreamEnd(error: error, trailers: trailers))
        return false
    }

    private func stop() -> Bool { finish(TransportError(.aborted, message: "the answer was refused")) }

    private func refuse(_ error: MessageError) -> Bool {
        finish(TransportError(.responseMalformed, message: error.detail))
    }
}

extension TransferredExchange: TransferDelegate {
    func transferWillSend(_ transfer: Transfer) -> Bool {
        guard let delegate else { return false }
        switch delegate.lastLook(over: transfer.pair) {
        case .unchanged:
            guard !delegate.hasTokenEnded else { return false }
            delegate.upstreamConnected(isReused: transfer.wasReused)
            return true
        case .withhold: return false
        case .changed: break
        }
        var text = ByteBuffer(isSecret: true)
        guard case .send = delegate.writeHead(HeadForm(isHTTP2: true), to: &text) else { return false }
        let head = OutgoingHead(text.bytes)
        guard transfer.beginAgain(target: head.target) else { return false }
        head.forEachField { transfer.append(name: $0, value: $1) }
        do throws(TransportError) { try transfer.commitFields() } catch { return false }
        guard !delegate.hasTokenEnded else { return false }
        delegate.upstreamConnected(isReused: transfer.wasReused)
        return true
    }

    func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool {
        if isHeadComplete { return takeTrailer(headerLine) }
        do throws(MessageError) {
            guard try head.append(line: headerLine, allowHTTP2: true) else { return true }
            guard head.isHTTP2 else { throw MessageError(status: 502, detail: "The answer is not one of HTTP/2.") }
        } catch {
            return refuse(error)
        }
        guard let delegate else { return false }
        guard delegate.upstreamAnswered(head) else { return stop() }
        if head.isInterim {
            interim += 1
            guard interim <= HTTP1Exchange.maxInterim else {
                return refuse(MessageError(status: 502, detail: "There are too many interim answers."))
            }
            head.reset(requestWasHead: request.isHead)
            return true
        }
        isHeadComplete = true
        return goesOn(after: 0)
    }

    /// Ends the exchange when `count` more bytes complete the answer. libcurl itself would wait for the rest of the
    /// request's body.
    private func goesOn(after count: Int) -> Bool {
        guard request.upload != .none else { return true }
        taken += UInt64(count)
        switch head.framing {
        case .none: break
        case .length(let length): guard taken >= length else { return true }
        case .chunked, .untilClose: return true
        }
        return finish(nil)
    }

    func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep {
        guard isHeadComplete, let delegate else { return .abort }
        // libcurl repeats whole pieces only.
        switch delegate.upstreamSent(body, keepsRest: false) {
        case .partly: return .pause
        case .abort:
            _ = stop()
            return .abort
        case .taken: return goesOn(after: body.count) ? .taken : .abort
        }
    }

    private func takeTrailer(_ line: Span<UInt8>) -> Bool {
        // Dropped trailers count, too: libcurl keeps them.
        trailerBytes += line.count
        do throws(MessageError) {
            guard trailerBytes <= Self.maxTrailerBytes else {
                throw MessageError(status: 502, detail: "The trailers are too large.")
            }
            switch try ResponseTrailer.check(line: line) {
            case .field(let name, let value):
                if head.connectionNames(line.extracting(name.range)) { return true }
                trailers.append(([UInt8](copying: line[name]), [UInt8](copying: line[value])))
            case .forbidden, .end: break
            }
            return true
        } catch {
            return refuse(error)
        }
    }

    func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep {
        delegate?.takeUpload(into: &upload) ?? .abort
    }

    func transferEnded(_ transfer: Transfer, error: TransportError?) {
        let delegate = delegate
        self.delegate = nil
        var error = error
        if error == nil, !isHeadComplete {
            error = TransportError(.responseTruncated, message: "the connection ended within the answer's head")
        }
        delegate?.upstreamEnded(UpstreamEnd(error: error, wasReused: transfer.wasReused, trailers: trailers))
    }
}

extension HTTP1Exchange.Upload {
    /// The length for libcurl. HTTP/2 carries no other protocol.
    fileprivate var length: UploadLength {
        switch self {
        case .none, .upgrade: .noBody
        case .length(let count): .known(count)
        case .chunked: .unknown
        }
    }
}
