import Configuration
import Heimdallr
import Reactor
import Reports

// Waits for a token that is missing or suspect.
extension Forwarder {
    /// Longest wait for a new token while a suspect one exists.
    private static let suspectWait = Duration.seconds(2)

    /// Waits in a task, which ends when the client leaves. A token request already sent continues.
    /// - Parameter refused: token answered with a 401.
    func waitForToken(insteadOf refused: AccessToken? = nil) {
        guard let upstream = current.upstream, let client = current.client else { return fail(.internalError) }
        current.exchange.awaitToken()
        current.ledger.times.tokenAwaited(shard.loop.now)
        keepTime()
        waitNumber += 1
        let number = waitNumber
        let me = LoopBound(self, on: shard.loop)
        var patience = upstream.rules.settings.tokenWait
        if refused == nil, client.currentToken() != nil { patience = min(patience, Self.suspectWait) }
        let limit = ContinuousClock.now + patience
        let resource = upstream.resource
        let waited = traceWait(at: upstream)
        tokenWait = Task {
            let result: Result<AccessToken, HeimdallrError>
            do throws(HeimdallrError) {
                result = .success(try await client.accessToken(for: resource, insteadOf: refused, before: limit))
            } catch {
                result = .failure(error)
            }
            waited?()
            me.loop.execute { me.value.tokenArrived(result, number) }
        }
    }

    private func tokenArrived(_ result: Result<AccessToken, HeimdallrError>, _ number: Int) {
        guard number == waitNumber else { return }
        tokenWait = nil
        guard current.exchange.isAwaitingToken, let upstream = current.upstream else { return }
        current.ledger.times.tokenCame(shard.loop.now)
        var failure: HeimdallrError?
        var doubted: AccessToken?
        switch result {
        case .success(let token): current.token = token
        case .failure(let error):
            failure = error
            doubted = current.client?.currentToken()
        }
        switch current.exchange.tokenArrived(failure, hasDoubted: doubted != nil) {
        case .send(let isFresh): sendWithToken(fresh: isFresh)
        case .sendDoubted(let isFresh):
            current.token = doubted
            sendWithToken(fresh: isFresh)
        case .pass(let answer): pass(answer)
        case .refuse:
            fail(failure.map { problem($0, at: upstream) } ?? .internalError)
        }
    }

    private func sendWithToken(fresh: Bool) {
        current.ledger.injection = current.exchange.isReplayed ? .replayed : .injected
        send(fresh: fresh)
    }
}
