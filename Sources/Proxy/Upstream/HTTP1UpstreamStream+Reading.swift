import CurlTransport
import HTTPMessage
import Reactor

// Reading the answer, and passing it to the delegate.
extension HTTP1UpstreamStream {
    private enum Parsing {
        /// All bytes were handled.
        case needsMore
        /// The delegate accepts no more bytes until `resumeBody`.
        case paused
        case over(Over)
    }

    func read(_ carrier: Carrier, _ delegate: any UpstreamStreamDelegate) -> Over? {
        guard !flow.isBodyPaused, flow.end == nil else { return nil }
        var buffer = ByteBuffer()
        // Exchanges share buffers. An exchange keeps a buffer only while the buffer holds bytes.
        if input.isEmpty { streams.lendReceived(&buffer) } else { swap(&buffer, &input) }
        let over = receive(&buffer, carrier, delegate)
        if over != nil { buffer.removeAll() }
        guard !buffer.isEmpty else {
            streams.giveBackReceived(&buffer)
            return over
        }
        // If many bytes are left, this exchange keeps the buffer, because a copy would be expensive.
        swap(&buffer, &input)
        guard input.count <= Self.lowWater, input.capacity > Self.readLimit / 2 else { return nil }
        swap(&buffer, &input)
        input.append(buffer.bytes)
        buffer.removeAll()
        streams.giveBackReceived(&buffer)
        return nil
    }

    private func receive(
        _ buffer: inout ByteBuffer, _ carrier: Carrier, _ delegate: any UpstreamStreamDelegate
    ) -> Over? {
        var taken = 0
        var hasBytes = !buffer.isEmpty
        while true {
            if hasBytes {
                switch parse(&buffer, carrier, delegate) {
                case .needsMore: break
                case .paused: return nil
                case .over(let over): return over
                }
            }
            guard taken < Self.share else {
                goOnNextTurn()
                return nil
            }
            let room = delegate.answerRoom()
            guard room > 0 else {
                flow.isBodyPaused = true
                return nil
            }
            switch receive(into: &buffer, from: carrier, limit: min(Self.readLimit, room)) {
            case .bytes(let count):
                taken += count
                hasBytes = true
            case .wouldBlock: return nil
            case .end(let isClean):
                flow.end = isClean
                return closed(isClean, delegate)
            case .failed(let error): return broken(error)
            }
        }
    }

    /// Reads once; over TLS, reads several records of content together, to pass on larger pieces.
    private func receive(into buffer: inout ByteBuffer, from carrier: Carrier, limit: Int) -> CarrierReceived {
        if let end = flow.unhandledEnd { return end }
        let first = carrier.receive(into: &buffer, limit: limit)
        guard carrier.isSecured, case .bytes(var count) = first else { return first }
        while count < limit, machine.isContent(buffer.count + 1) {
            let next = carrier.receive(into: &buffer, limit: limit - count)
            guard case .bytes(let more) = next else {
                if next != .wouldBlock { flow.unhandledEnd = next }
                break
            }
            count += more
        }
        return .bytes(count)
    }

    /// Handles the bytes in `buffer`. Leaves bytes that can't be handled yet.
    private func parse(
        _ buffer: inout ByteBuffer, _ carrier: Carrier, _ delegate: any UpstreamStreamDelegate
    ) -> Parsing {
        var index = 0
        if flow.held > 0 {
            index = flow.held
            flow.held = 0
            if let parsing = pass(0..<index, of: &buffer, delegate) { return parsing }
        }
        while true {
            let event: HTTP1Exchange.Event
            do throws(MessageError) { event = try machine.next(buffer.bytes, from: index) } catch {
                guard error == HTTP1Exchange.http2Only else { return .over(Over(.responseMalformed, error.detail)) }
                return .over(Over(.http2Only(isSecure: carrier.isSecured)))
            }
            switch event {
            case .needMore(let consumed):
                buffer.consume(consumed)
                return .needsMore
            case .head(let consumed):
                index = consumed
                guard machine.withHead({ delegate.upstreamAnswered($0) }) else { return .over(Self.refused) }
            case .content(let range, let consumed):
                index = consumed
                if let parsing = pass(range.range, of: &buffer, delegate) { return parsing }
            case .end(let consumed):
                if consumed < buffer.count { carrier.forbidReuse() }
                buffer.removeAll()
                return isRequestOver ? .over(Over()) : .needsMore
            }
        }
    }

    /// Passes a piece on. Bytes that the delegate does not take are passed again after `resumeBody`.
    /// - Returns: `nil` if all bytes were taken.
    private func pass(
        _ range: Range<Int>, of buffer: inout ByteBuffer, _ delegate: any UpstreamStreamDelegate
    ) -> Parsing? {
        switch delegate.upstreamSent(buffer.bytes.extracting(range)) {
        case .taken: return nil
        case .partly(let count):
            flow.isBodyPaused = true
            buffer.consume(range.lowerBound + count)
            flow.held = range.count - count
            return .paused
        case .abort: return .over(Self.refused)
        }
    }

    private static let refused = Over(.aborted, "the answer was refused")

    private func closed(_ isClean: Bool, _ delegate: any UpstreamStreamDelegate) -> Over? {
        // The upstream of an upgraded connection ended its side cleanly, and not all of the program's bytes are sent.
        if machine.isSwitched, isClean, !flow.isUploadOver || !output.isEmpty {
            delegate.upstreamEndedItsSide()
            return nil
        }
        return switch machine.closed(isClean: isClean) {
        case .whole: Over()
        case .unanswered: Over(.connectionLost, "the connection ended before an answer")
        case .cut where machine.isReadToEnd:
            Over(.responseTruncated, "the connection ended without TLS's close_notify, which ends this answer")
        case .cut: Over(.responseTruncated, "the connection ended within the answer")
        }
    }

    /// Returns the end after the connection failed. A complete answer ends without an error, and so does an upgraded
    /// connection whose program has ended its side.
    private func broken(_ error: TransportError) -> Over {
        if machine.isSwitched ? flow.isUploadOver : machine.isWhole { return Over() }
        if machine.closed(isClean: false) == .unanswered { return Over(error) }
        return Over(.responseTruncated, error.message)
    }
}
