import HTTPMessage
import Reactor

// The current request: its head and its body.
extension ServerConnection {
    public var request: ReceivedRequest { reader.request }

    public var progress: StreamProgress {
        StreamProgress(
            bodyTaken: reader.taken, isRequestComplete: reader.isComplete, canRewind: reader.canRewind,
            hasClientEnded: reader.input.isEnding, isOutputTaken: output.isEmpty, mustClose: server.isEnding(listener))
    }

    public func hasInput(reading: Bool) -> Bool? {
        if reading {
            guard phase == .busy else { return nil }
            guard reader.lookForInput(at: stream) else {
                close()
                return nil
            }
        }
        return !reader.input.isEmpty
    }

    public func peek() -> Peeked {
        guard let hasInput = hasInput(reading: true) else { return .gone }
        if hasInput { return .byte(reader.input.buffer.withBytes { $0[0] }) }
        if reader.input.hasEnded { return .end }
        waits.forBody = true
        return .wait
    }

    public func keepBody(upTo limit: Int) { reader.keep(upTo: limit) }

    public func rewindBody() -> Bool { reader.rewind() }

    public func readBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyReading {
        waits.forBody = false
        let reading = try reader.take(from: stream, into: &room)
        switch reading {
        case .wait: waits.forBody = true
        case .gone: close()
        case .bytes, .end, .cut: break
        }
        return reading
    }
}
