import CurlTransport
import HTTPMessage
import Reactor

// How requests and connections end, in order or by the clock.
extension ClientConnection {
    /// So long a client has to take its last answer once it is all sent.
    private static let lingerTimeout = Timeout(.seconds(2))

    /// The answer stands in `output`: goes on with the next request or closes behind it.
    func finishRequest(keeping: Bool) {
        outbound = nil
        shard.requestEnded(self)
        token = nil
        upstream = nil
        body.release(&input)
        phase = keeping && !shard.isDraining ? .readingHead : .closing
        head.reset()
        clearDeadline()
        scheduleFlush()
    }

    func closeBehindOutput() {
        guard !output.isEmpty else { return close() }
        phase = .closing
        scheduleFlush()
    }

    func finishClosing() {
        // Nothing unread: an orderly close loses nothing. Otherwise a reset could overtake the answer (RFC 9112, 9.6).
        if exchange.isRequestComplete, input.isEmpty, !mayRead || hasEnded { return close() }
        socket.shutdownWriting()
        phase = .lingering
        discarded = 0
        setDeadline(.linger, after: Self.lingerTimeout)
        discardInput()
    }

    /// The client is gone, or has to be told so: what is under way is cancelled.
    func hangUp() {
        guard phase != .closed else { return }
        if let tunnel { return tunnel.end(cut: true) }
        let wasBusy = phase == .exchanging || phase == .awaitingToken || phase == .dialling
        cancelOutbound()
        dialAttempt?.cancel()
        dialAttempt = nil
        if wasBusy { shard.requestEnded(self) }
        close()
    }

    /// The client has a part of an answer that will never be whole.
    func cut() {
        wasCut = true
        socket.resetOnClose()
        hangUp()
    }

    func close() {
        guard phase != .closed else { return }
        phase = .closed
        clearDeadline()
        releaseGuess()
        waitNumber += 1
        socket.close()
        shard.connectionEnded(self)
    }

    /// Since when it waits for a request; `nil` when it has one, or an answer that is not out.
    var idleSince: LoopTime? {
        guard phase == .readingHead, deadlineKind == .idle, input.isEmpty, output.isEmpty else { return nil }
        return LoopTime(nanoseconds: deadline.nanoseconds - (shard.idleTimeout.nanoseconds ?? 0))
    }

    /// The proxy stops: an idle connection closes now, a busy one after its answer.
    func drain() {
        if phase == .readingHead, input.isEmpty, output.isEmpty { close() }
    }

    // MARK: Deadlines

    func setDeadline(_ kind: Deadline, after timeout: Timeout) {
        guard let nanoseconds = timeout.nanoseconds else { return clearDeadline() }
        deadlineKind = kind
        deadline = shard.loop.now.advanced(by: nanoseconds)
        shard.noteDeadline(deadline)
    }

    func clearDeadline() {
        deadlineKind = .none
        deadline = LoopTime(nanoseconds: .max)
    }

    func deadlinePassed() {
        let kind = deadlineKind
        clearDeadline()
        switch kind {
        case .none: break
        case .idle, .linger: close()
        case .tunnelIdle: hangUp()
        case .guess: refuseGuess()
        case .head:
            startRequest(length: 0)
            keepWhatWasRead()
            fail(.slowHead)
        case .response, .upstreamIdle: exchange.isAnswered ? cut() : fail(.responseTimeout)
        case .requestBody: exchange.isAnswered ? cut() : fail(.slowBody)
        // The kernel asks for more once a good part of its buffer is free: until then, a client that reads slowly is
        // told from one that does not by what the kernel holds.
        case .clientStalled: socket.unacknowledged < unacknowledged ? waitForClient() : cut()
        }
    }

    func cancelOutbound() {
        outbound?.cancel()
        outbound = nil
    }
}
