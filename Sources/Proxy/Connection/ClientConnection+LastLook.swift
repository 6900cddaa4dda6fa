import CurlTransport
import Heimdallr
import Reactor

// A request may have waited for its connection: in the pool's queue, for the connect, for the handshake. A token that has
// expired or been refused meanwhile does not leave (rule 1).
extension ClientConnection {
    func transferWillSend(_ transfer: Transfer) -> Bool {
        // What is sent in the turn in which its token was taken has not waited.
        guard handedOver != shard.loop.now, let token, let upstream, let destination, let client = upstream.client
        else {
            return true
        }
        guard let current = client.currentToken() else { return false }
        guard current.generation != token.generation else { return true }
        self.token = current
        let credential = upstream.credential(for: current)
        shard.target.removeAll()
        headBytes.withBytes { build(&shard.target, $0, upstream, destination, credential) }
        guard shard.target.withBytes({ transfer.beginAgain(target: $0) }) else { return false }
        append(to: transfer, upstream, destination, credential)
        return (try? transfer.commitFields()) != nil
    }
}
