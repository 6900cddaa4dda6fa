import CurlTransport
import HTTPServer
import Reactor

// Writing the request's body as far as the connection accepts it.
extension HTTP1UpstreamStream {
    func write(_ carrier: Carrier, _ delegate: any UpstreamStreamDelegate) -> Over? {
        if flow.headWaits, let over = lookAgain(delegate) { return over }
        while !flow.cannotWrite {
            if machine.wantsUpload, !flow.isUploadPaused, output.count <= Self.lowWater {
                // If program and upstream are equally fast, this loop would not end, and other exchanges would wait.
                guard uploadShare.takesMore(turn: streams.loop.now, now: .current()) else {
                    goOnNextTurn()
                    return nil
                }
                if let over = pull(delegate) { return over }
            }
            guard !output.isEmpty else { break }
            switch output.withBytes({ carrier.send($0) }) {
            case .bytes(let count):
                output.consume(count)
                flow.unsentHead -= count
            case .wouldBlock:
                flow.headWaits = flow.unsentHead > 0
                return nil
            case .failed where flow.end != nil: return Over()
            // The upstream's last bytes may still be readable.
            case .failed: stopWriting()
            }
        }
        // A request that waits for its answer or its body does not keep the memory of a large head or piece.
        if output.capacity > Self.lowWater, output.isEmpty { output.release() }
        if flow.isUploadOver, output.isEmpty {
            if endsBySides { carrier.shutdownWriting() }
            if flow.end != nil { return Over() }
        }
        return machine.isWhole && isRequestOver ? Over() : nil
    }

    /// Checks the token of a head that waited for room in the socket (rule 1). Without the end of its head, the upstream
    /// can't take the request, and the connection is closed.
    private func lookAgain(_ delegate: any UpstreamStreamDelegate) -> Over? {
        flow.headWaits = false
        guard flow.unsentHead > 0, delegate.hasTokenEnded else { return nil }
        guard machine.isAnswered else { return Over(.withheld, "the token ended before the request was sent") }
        stopWriting()
        return nil
    }

    private func stopWriting() {
        flow.cannotWrite = true
        machine.stopUpload()
        output.removeAll()
        goOnNextTurn()
    }

    /// Whether the whole request was sent, or the rest is unwanted or can't be sent.
    var isRequestOver: Bool {
        flow.cannotWrite || machine.isUploadStopped || machine.isUploadFinished && output.isEmpty
    }

    private func pull(_ delegate: any UpstreamStreamDelegate) -> Over? {
        var step = UploadStep.wait
        var buffer = ByteBuffer()
        let isChunked = request.upload == .chunked && !machine.isSwitched
        if isChunked { streams.lendPiece(&buffer) } else { swap(&buffer, &output) }
        buffer.append(upTo: machine.room(Self.pieceLimit)) { bytes in
            step = delegate.takeUpload(into: &bytes)
            return if case .bytes(let count) = step { count } else { 0 }
        }
        if isChunked {
            output.append(chunk: buffer.bytes)
            buffer.removeAll()
            streams.giveBackPiece(&buffer)
        } else {
            swap(&buffer, &output)
        }
        switch step {
        case .bytes(let count): machine.sent(count)
        case .wait: flow.isUploadPaused = true
        case .end: return endUpload(delegate)
        case .abort: return Self.bodyCut
        }
        return nil
    }

    private func endUpload(_ delegate: any UpstreamStreamDelegate) -> Over? {
        // The other direction of an upgraded connection continues.
        if machine.isSwitched {
            flow.isUploadPaused = true
            flow.isUploadOver = true
            return nil
        }
        guard machine.endUpload() else { return Self.bodyCut }
        if request.upload == .chunked { output.append(lastChunk: delegate.takeTrailers()) }
        return nil
    }

    private static let bodyCut = Over(.aborted, "the request's body ended early")
}
