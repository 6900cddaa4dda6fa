import CurlTransport
import HTTPMessage
import Reactor

// Reads the answer and passes it to the delegate.
extension CarriedExchange {
    private enum Parsing {
        /// The bytes are used up.
        case needsMore
        /// The delegate is full, and says when to go on.
        case rests
        case over(Over)
    }

    func read(_ carrier: Carrier, _ delegate: any UpstreamStreamDelegate) -> Over? {
        guard !flow.isBodyPaused, flow.end == nil else { return nil }
        var buffer = ByteBuffer()
        // Exchanges share buffers while none holds bytes.
        if input.isEmpty { exchanges.lendReceived(&buffer) } else { swap(&buffer, &input) }
        let over = receive(&buffer, carrier, delegate)
        if over != nil { buffer.removeAll() }
        guard !buffer.isEmpty else {
            exchanges.giveBackReceived(&buffer)
            return over
        }
        // A large rest is not copied. Its buffer stays here.
        swap(&buffer, &input)
        guard input.count <= Self.lowWater, input.capacity > Self.readLimit / 2 else { return nil }
        swap(&buffer, &input)
        input.append(buffer.bytes)
        buffer.removeAll()
        exchanges.giveBackReceived(&buffer)
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
                case .rests: return nil
                case .over(let over): return over
                }
            }
            guard taken < Self.share else {
                goOnNextTurn()
                return nil
            }
            switch receive(into: &buffer, from: carrier) {
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
                return .over(Over(.responseMalformed, error.detail))
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

    /// Passes a piece on. What is not taken comes again after `resumeBody`.
    /// - Returns: `nil` when all was taken.
    private func pass(
        _ range: Range<Int>, of buffer: inout ByteBuffer, _ delegate: any UpstreamStreamDelegate
    ) -> Parsing? {
        switch delegate.upstreamSent(buffer.bytes.extracting(range)) {
        case .taken: return nil
        case .partly(let count):
            flow.isBodyPaused = true
            buffer.consume(range.lowerBound + count)
            flow.held = range.count - count
            return .rests
        case .abort: return .over(Self.refused)
        }
    }

    private static let refused = Over(.aborted, "the answer was refused")

    private func closed(_ isClean: Bool, _ delegate: any UpstreamStreamDelegate) -> Over? {
        // A clean end of one side of another protocol: the other side continues, or its last bytes still go out.
        if machine.isSwitched, isClean, !flow.isUploadOver || !output.isEmpty {
            delegate.upstreamEndedItsSide()
            return nil
        }
        return switch machine.closed(isClean: isClean) {
        case .whole: Over()
        case .unanswered: Over(.connectionLost, "the connection ended before an answer")
        case .cut: Over(.responseTruncated, "the connection ended within the answer")
        }
    }

    /// Distinguishes a failure before the first byte of the answer from one within it.
    private func broken(_ error: TransportError) -> Over {
        if machine.isSwitched || machine.isWhole { return Over() }
        if machine.closed(isClean: false) == .unanswered { return Over(error) }
        return Over(.responseTruncated, error.message)
    }
}
