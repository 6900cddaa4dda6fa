import HTTPMessage
import Reactor

// The current request: its head and its body.
extension ServerConnection {
    public var request: ReceivedRequest { reader.request }

    public var progress: StreamProgress {
        StreamProgress(
            bodyTaken: reader.taken, isRequestComplete: reader.isComplete, canRewind: reader.canRewind,
            hasProgramEnded: reader.input.isEnding, isOutputSent: output.isEmpty, mustClose: server.isEnding(listener))
    }

    public func hasInput(reading: Bool) -> Bool? {
        if reading {
            guard phase == .busy else { return nil }
            guard reader.lookForInput(at: stream) else {
                close()
                return nil
            }
        }
        return reader.hasMore
    }

    public func peek(until isEnough: (Span<UInt8>) -> Bool) -> Peeked {
        while let hasInput = hasInput(reading: true) {
            let first = reader.input.buffer.withBytes { hasInput && isEnough($0) ? $0[0] : nil }
            if let first { return .byte(first) }
            if reader.input.hasEnded { return .end }
            // epoll does not report bytes that have already arrived, so they are read now.
            if reader.input.canRead { continue }
            waits.forBody = true
            return .wait
        }
        return .gone
    }

    public func replaceRequest(by head: Span<UInt8>) throws(MessageError) {
        try reader.replaceHead(by: head, server.settings)
    }

    public func keepBody(upTo limit: Int, isNeeded: Bool) { reader.keep(upTo: limit) }

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
