import CurlTransport
import HTTPServer
import Reactor

// Writes the request's body as far as the connection takes it.
extension CarriedExchange {
    func write() {
        while let carrier, !flow.isDeaf {
            if machine.wantsUpload, !flow.isUploadPaused, output.count <= Self.lowWater {
                // A client as fast as the upstream must let others have a turn.
                guard hasShareLeft else { return goOnNextTurn() }
                pull()
                guard self.carrier != nil else { return }
            }
            guard !output.isEmpty else { break }
            switch output.withBytes({ carrier.send($0) }) {
            case .bytes(let count): output.consume(count)
            case .wouldBlock: return
            case .failed where flow.end != nil: return finish(nil)
            case .failed:
                // The peer's last bytes may still be readable.
                flow.isDeaf = true
                machine.stopUpload()
                output.removeAll()
                goOnNextTurn()
            }
        }
        if flow.isUploadOver, output.isEmpty, let carrier {
            if flow.endsWriting { carrier.shutdownWriting() }
            if flow.end != nil { return finish(nil) }
        }
        if self.carrier != nil, machine.isWhole, isRequestOver { finish(nil) }
    }

    private var hasShareLeft: Bool {
        let (turn, now) = (exchanges.loop.now, LoopTime.current())
        return uploadShare.takesMore(turn: turn, now: now)
    }

    /// Whether all of the request was sent, or the rest is not wanted.
    var isRequestOver: Bool {
        flow.isDeaf || machine.isUploadStopped || machine.isUploadFinished && output.isEmpty
    }

    private func pull() {
        guard let delegate else { return }
        var step = UploadStep.wait
        var buffer = ByteBuffer()
        if request.upload == .chunked { exchanges.lendPiece(&buffer) } else { swap(&buffer, &output) }
        buffer.append(upTo: machine.room(Self.pieceLimit)) { bytes in
            step = delegate.takeUpload(into: &bytes)
            return if case .bytes(let count) = step { count } else { 0 }
        }
        if request.upload == .chunked {
            output.append(chunk: buffer.bytes)
            buffer.removeAll()
            exchanges.giveBackPiece(&buffer)
        } else {
            swap(&buffer, &output)
        }
        guard carrier != nil else { return output.removeAll() }
        switch step {
        case .bytes(let count): machine.sent(count)
        case .wait: flow.isUploadPaused = true
        case .end: endUpload(delegate)
        case .abort: finish(TransportError(.aborted, message: "the request's body ended early"))
        }
    }

    private func endUpload(_ delegate: any UpstreamExchangeDelegate) {
        // The other direction of an upgraded connection continues.
        if machine.isSwitched {
            flow.isUploadPaused = true
            flow.isUploadOver = true
            return
        }
        guard machine.endUpload() else {
            return finish(TransportError(.aborted, message: "the request's body ended early"))
        }
        if request.upload == .chunked { output.append(lastChunk: delegate.takeTrailers()) }
    }
}
