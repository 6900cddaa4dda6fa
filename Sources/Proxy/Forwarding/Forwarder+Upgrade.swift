import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor

// Upgrades (RFC 9110, section 7.8): the handshake is an ordinary request, with its token. After the upstream's 101,
// upload and body are the bytes of the other protocol.
//
// The client's bytes before the 101 are not passed on: they could be meant for another server (RFC 9931). For the same
// reason the connection ends after any other answer.
extension Forwarder {
    /// - Returns: whether the exchange continues.
    func switchProtocols(_ answer: borrowing ResponseHead) -> Bool {
        guard answer.upgrades, let offer = current.admitted.upgrade,
            let agreed = UpgradeList(answer.fields, in: answer.bytes.span),
            agreed.isCovered(by: offer)
        else { return refuse(.unaskedUpgrade) }
        guard let hasInput = stream.hasInput(reading: true) else {
            leave()
            return false
        }
        guard !hasInput else { return refuse(.bytesBeforeUpgrade) }
        current.exchange.switchProtocols()
        current.ledger.status = 101
        let bytes = answer.bytes
        stream.answer(AnswerHead(101), reason: bytes.span[answer.reason]) { output in
            answer.writeFields(to: &output, current.admitted.addressMap)
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(agreed.value)
            output.append("\r\n")
        }
        keepTime()
        return true
    }

    /// Ends the output to the client. The other direction continues.
    func upstreamEndedItsSide() {
        current.exchange.upstreamEnded()
        stream.endOutput()
        keepTime()
    }

    func takeSwitched(into bytes: inout MutableSpan<UInt8>) -> UploadStep {
        // The upstream refused the upgrade: no bytes to send.
        guard current.exchange.isSwitched else { return current.exchange.isAnswered ? .end : .wait }
        switch try? stream.readBody(into: &bytes) {
        case .bytes(let count):
            current.ledger.bytesSwitched += UInt64(count)
            shard.bytesPassed(self, sent: UInt64(count))
            keepTime()
            return .bytes(count)
        case .wait: return .wait
        case .end, .cut, nil:
            // Without a way to pass this end on, the rest ends soon.
            if current.outbound?.endWriting() != true { current.exchange.leave() }
            keepTime()
            return .end
        case .gone:
            leave()
            return .abort
        }
    }
}
