import CurlTransport
import HTTP2
import HTTPServer
import Reactor

// Sends at the turn's end, so that the requests of a turn go out together.
extension HTTP2Connection: TurnEndHandler, NextTurnHandler {
    func scheduleFlush() {
        guard !marks.isFlushing, isReady else { return }
        marks.isFlushing = true
        loop.atTurnEnd(self)
    }

    func turnEnded() {
        marks.isFlushing = false
        dispatch()
        flush()
        dispatch()
    }

    func goOnNextTurn() {
        guard !marks.isTurnScheduled else { return }
        marks.isTurnScheduled = true
        loop.atNextTurn(self)
    }

    func nextTurn() {
        marks.isTurnScheduled = false
        if let carrier { carrierReady(carrier) }
    }

    private func flush() {
        var sent = 0
        while let carrier, let session {
            if output.isEmpty {
                giveUploads()
                guard isReady else { return }
                fill(session)
                guard !output.isEmpty else { return }
            }
            switch output.withBytes({ carrier.send($0) }) {
            case .bytes(let count):
                writes += 1
                output.consume(count)
                sent += count
                guard sent < Self.share else { return goOnNextTurn() }
            case .wouldBlock: return
            // The server's last words may still be readable.
            case .failed: return goOnNextTurn()
            }
        }
    }

    /// Only heads are wiped: they have secrets.
    private func fill(_ session: HTTP2Session) {
        do throws(HTTP2Error) {
            try session.fill(&output, limit: Self.writeSize)
        } catch {
            lost(TransportError(.internal, message: "HTTP/2: \(error)"))
        }
        output.isSecret = false
    }

    /// Sends a GOAWAY as far as the connection takes it at once.
    func sendLastWords(_ carrier: Carrier) {
        guard let session, output.isEmpty else { return }
        try? session.fill(&output, limit: Self.writeSize)
        if !output.isEmpty { _ = output.withBytes { carrier.send($0) } }
    }

    // MARK: Bodies of requests

    /// An exchange has more of the request's body, or can be asked.
    func wantsUpload(_ stream: Int32) {
        uploads.append(stream)
        scheduleFlush()
    }

    private func giveUploads() {
        guard !uploads.isEmpty else { return }
        var streams: [Int32] = []
        swap(&streams, &uploads)
        for stream in streams {
            guard let exchange = exchanges[stream], exchange.giveUpload(self, stream, turn: loop.now) else { continue }
            uploads.append(stream)
        }
    }

    /// Whether the stream takes a further piece now.
    func hasRoom(on stream: Int32) -> Bool { session.map { $0.unsent(of: stream) <= Self.uploadSize / 4 } ?? false }

    /// Takes the next piece of the request's body.
    func take(from delegate: any UpstreamStreamDelegate, for stream: Int32, atMost left: UInt64?) -> UploadStep {
        var step = UploadStep.wait
        var piece = ByteBuffer()
        buffers.lendPiece(&piece)
        let limit = Int(min(UInt64(Self.uploadSize), left ?? UInt64(Self.uploadSize)))
        piece.append(upTo: limit) { bytes in
            step = delegate.takeUpload(into: &bytes)
            return if case .bytes(let count) = step { count } else { 0 }
        }
        if !piece.isEmpty { _ = session?.write(piece.bytes, to: stream, takesAll: true) }
        piece.removeAll()
        buffers.giveBackPiece(&piece)
        return step
    }

    func endUpload(_ stream: Int32, trailers: [(name: [UInt8], value: [UInt8])]) {
        guard !trailers.isEmpty else {
            session?.end(stream)
            return
        }
        var fields = HTTP2FieldList()
        for (name, value) in trailers { fields.append(name.span, value.span) }
        session?.end(stream, trailers: fields)
    }

    /// Opens the stream's window for bytes that the client has taken.
    func consume(_ count: Int, of stream: Int32) {
        session?.consume(stream, count)
        scheduleFlush()
    }
}

extension HTTP2FieldList {
    /// A request's head.
    /// - Parameter text: of HTTP/1.1, as the proxy wrote it.
    init(request text: Span<UInt8>, _ scheme: Origin.Scheme) {
        self.init(isSecret: true)
        let head = OutgoingHead(text)
        append(":method", head.method)
        append(":scheme", Array(scheme.rawValue.utf8).span)
        append(":path", head.target)
        var isFirst = true
        head.forEachField { name, value in
            // Host is the first field.
            if isFirst { append(":authority", value) } else { append(name, value) }
            isFirst = false
        }
    }
}
