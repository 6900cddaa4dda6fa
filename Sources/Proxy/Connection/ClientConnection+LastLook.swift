import Heimdallr
import Reactor

// A request may have waited for its connection: in the pool's queue, for the connect, for the handshake. A token that has
// expired or been refused meanwhile does not leave (rule 1).
extension ClientConnection {
    func lastLook() -> LastLook {
        // What is sent in the turn in which its token was taken has not waited.
        guard handedOver != shard.loop.now, let token, let client = upstream?.client else { return .unchanged }
        guard let current = client.currentToken() else { return .withhold }
        guard current.generation != token.generation else { return .unchanged }
        self.token = current
        return .changed
    }
}
