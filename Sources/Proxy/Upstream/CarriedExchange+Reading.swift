import CurlTransport
import HTTPMessage
import Reactor

// Reads the answer and passes it to the delegate.
extension CarriedExchange {
    func read() {
        guard !flow.isBodyPaused, flow.end == nil else { return }
        var buffer = ByteBuffer()
        // Exchanges share buffers while none holds bytes.
        if input.isEmpty { exchanges.lendReceived(&buffer) } else { swap(&buffer, &input) }
        receive(&buffer)
        if carrier == nil { buffer.removeAll() }
        guard !buffer.isEmpty else { return exchanges.giveBackReceived(&buffer) }
        // A large rest is not copied. Its buffer stays here.
        swap(&buffer, &input)
        guard input.count <= Self.lowWater, input.capacity > Self.readLimit / 2 else { return }
        swap(&buffer, &input)
        input.append(buffer.bytes)
        buffer.removeAll()
        exchanges.giveBackReceived(&buffer)
    }

    private func receive(_ buffer: inout ByteBuffer) {
        var taken = 0
        if !buffer.isEmpty, !parse(&buffer) { return }
        while let carrier {
            guard taken < Self.share else { return goOnNextTurn() }
            switch receive(into: &buffer, from: carrier) {
            case .bytes(let count):
                taken += count
                guard parse(&buffer) else { return }
            case .wouldBlock: return
            case .end(let isClean):
                flow.end = isClean
                return closed(isClean)
            case .failed(let error): return finish(broken(error))
            }
        }
    }

    /// Reads more records of TLS while they are content, to pass larger pieces on.
    private func receive(into buffer: inout ByteBuffer, from carrier: Carrier) -> CarrierReceived {
        if let last = flow.last { return last }
        let first = carrier.receive(into: &buffer, limit: Self.readLimit)
        guard carrier.isSecured, case .bytes(var count) = first else { return first }
        while count < Self.readLimit, machine.isContent(buffer.count + 1) {
            let next = carrier.receive(into: &buffer, limit: Self.readLimit - count)
            guard case .bytes(let more) = next else {
                if next != .wouldBlock { flow.last = next }
                break
            }
            count += more
        }
        return .bytes(count)
    }

    /// Handles the bytes in `buffer`. Leaves those that can't be handled yet.
    private func parse(_ buffer: inout ByteBuffer) -> Bool {
        var index = 0
        if flow.held > 0 {
            guard pass(0..<flow.held, of: &buffer) else { return false }
            index = flow.held
            flow.held = 0
        }
        while carrier != nil {
            let event: HTTP1Exchange.Event
            do throws(MessageError) { event = try machine.next(buffer.bytes, from: index) } catch {
                finish(TransportError(.responseMalformed, message: error.detail))
                return false
            }
            switch event {
            case .needMore(let consumed):
                buffer.consume(consumed)
                return true
            case .head(let consumed):
                index = consumed
                guard let delegate, delegate.upstreamAnswered(machine.head) else { return stop() }
            case .content(let range, let consumed):
                guard pass(range.range, of: &buffer) else { return false }
                index = consumed
            case .end(let consumed):
                if consumed < buffer.count { carrier?.forbidReuse() }
                buffer.removeAll()
                if isRequestOver { finish(nil) }
                return carrier != nil && flow.end == nil
            }
        }
        return false
    }

    /// - Returns: whether all bytes were taken and the exchange continues. The rest comes again after `resumeBody`.
    private func pass(_ range: Range<Int>, of buffer: inout ByteBuffer) -> Bool {
        guard let delegate else { return false }
        switch delegate.upstreamSent(buffer.bytes.extracting(range), keepsRest: true) {
        case .taken: return carrier != nil
        case .partly(let count):
            flow.isBodyPaused = carrier != nil
            buffer.consume(range.lowerBound + count)
            flow.held = range.count - count
            return false
        case .abort: return stop()
        }
    }

    private func stop() -> Bool {
        if carrier != nil { finish(TransportError(.aborted, message: "the answer was refused")) }
        return false
    }

    private func closed(_ isClean: Bool) {
        // A clean end of one side of another protocol: the other side continues.
        if machine.isSwitched, isClean, !flow.isUploadOver {
            delegate?.upstreamEndedItsSide()
            return
        }
        switch machine.closed(isClean: isClean) {
        case .whole: finish(nil)
        case .unanswered:
            finish(TransportError(.connectionLost, message: "the connection ended before an answer"))
        case .cut: finish(TransportError(.responseTruncated, message: "the connection ended within the answer"))
        }
    }

    /// Distinguishes a failure before the first byte of the answer from one within it.
    private func broken(_ error: TransportError) -> TransportError? {
        if machine.isSwitched || machine.isWhole { return nil }
        if machine.closed(isClean: false) == .unanswered { return error }
        return TransportError(.responseTruncated, message: error.message)
    }
}
