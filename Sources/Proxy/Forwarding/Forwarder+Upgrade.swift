import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor

// Upgrades (RFC 9110, section 7.8): the handshake is a request like any other, with its token; once the upstream has
// agreed, upload and body are the bytes of the other protocol.
//
// Nothing that the client sends before it has seen the 101 is passed on: it could be meant for somebody else (RFC 9931).
// For the same reason the connection ends behind an answer that is no 101.
extension Forwarder {
    /// The upstream has answered 101.
    /// - Returns: whether to go on.
    func switchProtocols(_ answer: borrowing ResponseHead) -> Bool {
        guard answer.upgrades, let offer = current.admitted.upgrade,
            let agreed = UpgradeList(answer.fields, in: answer.bytes.span),
            agreed.isCovered(by: offer)
        else { return refuse(.unaskedUpgrade) }
        guard connection.lookForInput() else { return false }
        guard !connection.hasInput else { return refuse(.bytesBeforeUpgrade) }
        current.exchange.switchProtocols()
        current.ledger.status = 101
        connection.write { output in
            answer.write(to: &output, current.admitted.addressMap)
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(agreed.value)
            output.append("\r\n\r\n")
        }
        connection.beginRawBody()
        keepTime()
        return true
    }

    /// The client is told so; what it sends goes on.
    func upstreamEndedItsSide() {
        current.exchange.upstreamEnded()
        connection.endOutput()
        keepTime()
    }

    /// From the client.
    func takeSwitched(into bytes: inout MutableSpan<UInt8>) -> UploadStep {
        // The answer was no: there is nothing to send.
        guard current.exchange.isSwitched else { return current.exchange.isAnswered ? .end : .wait }
        switch try? connection.takeBody(into: &bytes) {
        case .bytes(let count):
            current.ledger.bytesSwitched += UInt64(count)
            shard.bytesPassed(self, sent: UInt64(count))
            keepTime()
            return .bytes(count)
        case .wait: return .wait
        case .end, .cut, nil:
            // An end that can't be passed on ends the rest soon.
            if current.outbound?.endWriting() != true { current.exchange.leave() }
            keepTime()
            return .end
        case .gone: return .abort
        }
    }
}
