import CurlTransport
import HTTPMessage
import Reactor

// Upgrades (RFC 9110, section 7.8): the handshake is a request like any other, with its token; once the upstream has
// agreed, upload and body are the bytes of the other protocol.
//
// Nothing that the client sends before it has seen the 101 is passed on: it could be meant for somebody else (RFC 9931).
// For the same reason the connection ends behind an answer that is no 101.
extension ClientConnection {
    /// How long the upstream may be silent once the client has ended its side, where that end can't be passed on.
    private static let farewell = Timeout(.milliseconds(500))

    /// Passes the offer on, where it is one that can be kept. Others are left out, as a server may that does not know
    /// them.
    func offerUpgrade() throws(Problem) {
        let listed = headBytes.withBytes { UpgradeList(head.fields, in: $0) }
        if let listed, listed.withoutHTTP.isEmpty { return }
        exchange.clientKeepsAlive = false
        guard let offer = listed?.withoutHTTP, exchange.isRequestComplete, !exchange.hasBody, !exchange.isHead,
            head.methodKind != .trace, case .path = target
        else { return }
        guard input.isEmpty else { throw .bytesBeforeUpgrade }
        exchange.upgrade = offer
    }

    /// The upstream has answered 101.
    /// - Returns: whether to go on.
    func switchProtocols(_ answer: borrowing ResponseHead) -> Bool {
        guard answer.upgrades, let offer = exchange.upgrade,
            let agreed = UpgradeList(answer.fields, in: answer.bytes.span),
            agreed.isCovered(by: offer)
        else { return refuse(.unaskedUpgrade) }
        if mayRead { fill(limit: 16 * 1024) }
        guard phase == .exchanging else { return false }
        guard input.isEmpty else { return refuse(.bytesBeforeUpgrade) }
        isAnswerHeadComplete = true
        exchange.switchProtocols()
        status = 101
        answer.write(to: &output, addressMap)
        output.append("Connection: Upgrade\r\nUpgrade: ")
        output.append(agreed.value)
        output.append("\r\n\r\n")
        scheduleFlush()
        noteProgress()
        return true
    }

    private func noteProgress() {
        if isLeaving { return setDeadline(.tunnelIdle, after: Self.farewell) }
        setDeadline(.upstreamIdle, after: upstream?.idleTimeout ?? .off)
    }

    /// From the upstream.
    func passOn(_ bytes: Span<UInt8>) -> BodyStep {
        if output.count > Self.highWater {
            isPaused = true
            waitForClient()
            return .pause
        }
        guard hasShareLeft else { return waitForTurn() }
        noteProgress()
        let size = UInt64(bytes.count)
        write(body: bytes)
        guard phase == .exchanging else { return .abort }
        bytesSent += size
        shard.bytesPassed(self, received: size)
        return .taken
    }

    /// From the client.
    func passOn(into upload: inout MutableSpan<UInt8>) -> UploadStep {
        guard exchange.isSwitched else {
            // The answer was no: there is nothing to send.
            if isAnswerHeadComplete { return .end }
            isUploadWaiting = true
            return .wait
        }
        if input.isEmpty, mayRead { fill(limit: upload.count) }
        guard phase == .exchanging else { return .abort }
        if input.isEmpty {
            guard hasEnded else {
                isUploadWaiting = true
                return .wait
            }
            // An end that can't be passed on ends the rest soon.
            isLeaving = outbound?.endWriting() != true
            noteProgress()
            return .end
        }
        let count = min(input.count, upload.count)
        input.copy(0..<count, to: &upload, at: 0)
        input.consume(count)
        switchedCount += UInt64(count)
        shard.bytesPassed(self, sent: UInt64(count))
        noteProgress()
        return .bytes(count)
    }
}
