import Configuration
import Heimdallr
import Reactor

// Waits for a token that is missing or suspect.
extension Forwarder {
    /// Longest wait for a new token while a suspect token exists.
    private static let suspectWait = Duration.seconds(2)

    /// Waits for a token in a task, which is cancelled when the program leaves. A token request already sent continues.
    /// - Parameter refused: token that the upstream refused; `nil` if it refused none.
    func awaitToken(insteadOf refused: AccessToken?) {
        guard let upstream = context.upstream, let client = context.oauthClient else {
            return perform(.fail(Problem(.internalError)))
        }
        context.exchange.awaitToken()
        context.ledger.times.tokenAwaited(shard.loop.now)
        waitNumber += 1
        let number = waitNumber
        let me = LoopBound(self, on: shard.loop)
        var patience = upstream.rule.settings.tokenWait
        if refused == nil, client.currentToken() != nil { patience = min(patience, Self.suspectWait) }
        let limit = ContinuousClock.now + patience
        let resource = upstream.resource
        let waited = context.traceWait(at: upstream)
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
        context.ledger.times.tokenCame(shard.loop.now)
        switch result {
        case .success(let token):
            context.token = token
            perform(context.exchange.tokenArrived(nil, hasSuspect: false, Problem(.internalError)))
        case .failure(.needsAuthentication)
        where !context.exchange.attempts.hasNewToken && TokenPhase.goesWithoutToken(&context):
            context.token = nil
            perform(context.exchange.tokenArrived(nil, hasSuspect: false, Problem(.internalError)))
        case .failure(let error):
            let hasSuspect = context.oauthClient?.currentToken() != nil
            let problem = TokenPhase.problem(error, context)
            perform(context.exchange.tokenArrived(error, hasSuspect: hasSuspect, problem))
        }
    }
}
