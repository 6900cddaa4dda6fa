import CurlTransport
import HTTP2
import Reactor

// Processing of the received bytes. The session stops behind many decoded heads, so that they are handled first.
extension HTTP2UpstreamConnection {
    func feed() -> Bool {
        notes.heard = loop.now
        notes.unprocessed = input.count
        do throws(HTTP2Error) {
            try input.withBytes { bytes throws(HTTP2Error) in try process(bytes) }
            return true
        } catch {
            lost(TransportError(.responseMalformed, message: "HTTP/2: \(error)"))
            return false
        }
    }

    /// Processes the last bytes of `bytes`, as many as are unprocessed. The session may leave some behind its events.
    private func process(_ bytes: Span<UInt8>) throws(HTTP2Error) {
        guard let session else { return }
        notes.unprocessed -= try session.receive(bytes.extracting(last: notes.unprocessed), at: loop.now)
        notes.decoded += session.load.decoded
    }

    /// Handles the session's pending events.
    func dispatch() {
        guard !notes.isDispatching, let session else { return }
        notes.isDispatching = true
        var bytes = ByteBuffer()
        swap(&bytes, &input)
        var count = bytes.count
        while true {
            while let event = session.next() { handle(event, bytes.bytes.extracting(last: count), session) }
            guard session.load.isPaused, carrier != nil else { break }
            count = notes.unprocessed
            do throws(HTTP2Error) { try process(bytes.bytes) } catch {
                lost(TransportError(.responseMalformed, message: "HTTP/2: \(error)"))
            }
        }
        bytes.removeAll()
        if bytes.capacity > Self.share / 4 { bytes.release() }
        if input.isEmpty { swap(&bytes, &input) }
        notes.isDispatching = false
        if carrier != nil, session.isFinished { lost(TransportError(.responseMalformed, message: "HTTP/2 failed")) }
    }
}
