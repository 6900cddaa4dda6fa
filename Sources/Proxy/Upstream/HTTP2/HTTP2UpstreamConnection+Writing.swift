import CurlTransport
import HTTP2
import HTTPMessage
import HTTPServer
import Reactor

// Writing, at the end of the loop's turn: all requests of one turn share a write.
extension HTTP2UpstreamConnection: TurnEndHandler, NextTurnHandler {
    func scheduleFlush() {
        guard !notes.isFlushing, isReady else { return }
        notes.isFlushing = true
        loop.atTurnEnd(self)
    }

    func turnEnded() {
        notes.isFlushing = false
        dispatch()
        flush()
        dispatch()
    }

    func goOnNextTurn() {
        guard !notes.isTurnScheduled else { return }
        notes.isTurnScheduled = true
        loop.atNextTurn(self)
    }

    func nextTurn() {
        notes.isTurnScheduled = false
        if let carrier { carrierReady(carrier) }
    }

    private func flush() {
        let wasBlocked = notes.isBlocked
        var sent = 0
        while let carrier, let session {
            if output.isEmpty {
                gather(session)
                guard !output.isEmpty else { return flushed(wasBlocked) }
            }
            switch output.withBytes({ carrier.send($0) }) {
            case .bytes(let count):
                writes += 1
                output.consume(count)
                sent += count
                guard sent < Self.share else {
                    notes.isBlocked = false
                    return goOnNextTurn()
                }
            case .wouldBlock:
                notes.isBlocked = true
                return takeBackHeads()
            // The server's last answer or GOAWAY may still be readable.
            case .failed: return goOnNextTurn()
            }
        }
    }

    /// Handles the end of all output.
    private func flushed(_ wasBlocked: Bool) {
        notes.isBlocked = false
        takeBackHeads()
        if wasBlocked { serveOthers() }
    }

    /// Moves frames to `output`, first the heads of requests, then their bodies. A body is read behind its head, so a
    /// request without a sent head can wait for another connection.
    private func gather(_ session: HTTP2Session) {
        fill(session)
        if !uploads.isEmpty, output.count < Self.writeSize {
            giveUploads(session)
            if isReady { fill(session) }
        }
        output.isSecret = false
    }

    /// Moves frames from the session to `output`. They count as secret if a request's head is among them.
    private func fill(_ session: HTTP2Session) {
        do throws(HTTP2Error) {
            try session.fill(&output, limit: Self.writeSize)
        } catch {
            lost(TransportError(.internal, message: "HTTP/2: \(error)"))
        }
    }

    /// Takes back the heads that the session still holds: the socket is full, or the server has lowered its number of
    /// streams. In the session, a head would wait with a token that may end meanwhile (rule 1). The requests wait at the
    /// origin instead.
    private func takeBackHeads() {
        guard notes.hasNewHead, let session else { return }
        notes.hasNewHead = false
        guard notes.isBlocked || session.openStreams > session.peersMaxStreams else { return }
        let unsent = exchanges.filter { !session.hasSentHead(of: $0.key) }
        guard !unsent.isEmpty else { return }
        for (stream, exchange) in unsent {
            exchanges[stream] = nil
            session.reset(stream, .cancel)
            exchange.goBack(to: origin)
        }
        scheduleFlush()
        origin.dialMore()
    }

    /// Sends the session's last frames, such as GOAWAY, if the socket accepts them at once. Sends nothing if a request
    /// head is among them: another connection will send this head.
    func sendLastWords(_ carrier: Carrier) {
        guard let session, output.isEmpty, !exchanges.values.contains(where: { $0.isUnsent }) else { return }
        try? session.fill(&output, limit: Self.writeSize)
        if !output.isEmpty { _ = output.withBytes { carrier.send($0) } }
    }

    // MARK: Bodies of requests

    /// Schedules a read of the stream's request body.
    func wantsUpload(_ stream: Int32) {
        uploads.append(stream)
        scheduleFlush()
    }

    private func giveUploads(_ session: HTTP2Session) {
        var streams: [Int32] = []
        swap(&streams, &uploads)
        for stream in streams {
            guard let exchange = exchanges[stream] else { continue }
            guard session.hasSentHead(of: stream), !exchange.giveUpload(self, stream, turn: loop.now) else {
                uploads.append(stream)
                continue
            }
        }
    }

    /// Whether the stream's send buffer has room for another piece.
    func hasRoom(on stream: Int32) -> Bool { session.map { $0.unsent(of: stream) <= Self.uploadSize / 4 } ?? false }

    /// Moves the next piece of the request's body from the delegate to the stream.
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

    /// Reopens the stream's receive window by the number of bytes that the program has taken.
    func consume(_ count: Int, of stream: Int32) {
        session?.consume(stream, count)
        scheduleFlush()
    }
}

extension HTTP2FieldList {
    /// Converts a request's head.
    /// - Parameter text: the head in HTTP/1.1, as the proxy wrote it.
    init(request text: Span<UInt8>, _ scheme: Scheme) {
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
