import Administration
import Configuration
import Heimdallr
import Reactor
import Reports

/// Asks each client's authorization server for what the client needs: its addresses, and a token where nobody has to
/// sign in for one. Tokens are kept nowhere.
struct Trial {
    let configuration: Configuration

    struct Result: Sendable {
        var isGood: Bool
        /// Whole lines; no secret in any.
        var text: String
    }

    /// In the order of the configuration.
    /// - Throws: when there is no event loop, or a client can't work at all.
    func results() async throws -> [Result] {
        let loop = try EventLoop.start(name: "trial")
        defer { loop.stop() }
        let secrets = SecretShelf(configuration)
        var clients: [Candidate] = []
        for settings in configuration.clients {
            let last = TokenRequestNotes()
            let heimdallr = try ClientAssembly(settings, configuration, secrets).make(
                on: loop, store: OAuthAccessTokenMemoryStore(), last: last, onTokenRequest: { _ in })
            clients.append(Candidate(settings: settings, heimdallr: heimdallr, last: last))
        }
        let results = await withTaskGroup(of: (Int, Result).self) { group in
            for (index, client) in clients.enumerated() {
                group.addTask { (index, await client.result()) }
            }
            return await group.reduce(into: [Int: Result]()) { $0[$1.0] = $1.1 }
        }
        for client in clients { client.heimdallr.shutdown() }
        return clients.indices.compactMap { results[$0] }
    }

}

/// One client that is tried.
private struct Candidate: Sendable {
    let settings: ClientSettings
    let heimdallr: Heimdallr
    let last: TokenRequestNotes

    func result() async -> Trial.Result {
        let client = heimdallr
        let endpoints: [(name: String, url: String)]
        do throws(LoginError) {
            endpoints = try await client.findEndpoints()
        } catch {
            return failure("\(error)", Advice(client.status()).sentence(for: error))
        }
        let places = endpoints.map { "\($0.name) \($0.url.prefix { $0 != "?" })" }.joined(separator: ", ")
        guard client.loginMethod == nil else {
            return Trial.Result(
                isGood: true, text: "  \(client.name): somebody has to sign in; found: \(places)\n")
        }
        guard !client.exchangesCallers else {
            return Trial.Result(
                isGood: true,
                text:
                    "  \(client.name): each caller's own token is exchanged, so there is none to try; found: \(places)\n"
            )
        }
        guard settings.grantType != .refreshToken else {
            return Trial.Result(
                isGood: true,
                text:
                    "  \(client.name): its refresh token was not tried, for it may be good only once; found: \(places)\n"
            )
        }
        return await token(client, places, patience: settings.timeout + .seconds(5))
    }

    private func token(_ client: Heimdallr, _ places: String, patience: Duration) async -> Trial.Result {
        let events = client.events()
        // Ends the stream, and with it the wait.
        let alarm = Task {
            if (try? await Task.sleep(for: patience)) != nil { client.shutdown() }
        }
        defer { alarm.cancel() }
        client.start()
        for await event in events {
            switch event.kind {
            case .tokenAcquired(let expiresIn, _), .tokenRefreshed(let expiresIn):
                let left = client.status().scopeNotGranted
                let scope = left.isEmpty ? "" : "; not granted: \(left.joined(separator: ", "))"
                return Trial.Result(
                    isGood: true,
                    text:
                        "  \(client.name): got a token, good for \(expiresIn.components.seconds) s\(scope); \(places)\n"
                )
            case .tokenFailed(let error):
                return failure("\(error)", Advice(client.status()).sentence(for: error))
            case .needsAuthentication, .tokenLost, .refreshTokenEnding, .loginFailed: continue
            }
        }
        return failure("no answer came in time", nil)
    }

    private func failure(_ reason: String, _ advice: String?) -> Trial.Result {
        var text = "  \(heimdallr.name): no token: \(reason)\n"
        if let url = last.current.url { text += "    asked: \(url)\n" }
        if let cause = last.current.cause { text += "    cause: \(cause)\n" }
        if let advice { text += "    what to do: \(advice)\n" }
        return Trial.Result(isGood: false, text: text.replacing("`", with: ""))
    }
}
