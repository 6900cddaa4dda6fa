import Heimdallr
import Reports

struct ReadinessAnswer {
    struct Client {
        var status: HeimdallrStatus
        var isUnattended: Bool
        var signIn: SignInWay
        /// See `AdministrationSources.Client`.
        var issuer: String?
        var tokenEndpoint: String?
        /// See `AdministrationSources.Client`.
        var lastRequest = LastTokenRequest()
        var file: TokenFileReport?

        /// Issuer or token endpoint of the client, as the name of its authorization server.
        var server: String? { issuer ?? tokenEndpoint }

        /// The last failed sign-in since the last token, in a sentence; `nil`: none.
        var lastSignIn: String? {
            guard let error = status.lastLoginError else { return nil }
            let since = status.sinceLastLoginError.map { " \(StatusPage.words($0)) ago" } ?? ""
            let advice = Advice(signIn).sentence(for: error).map { "; \($0)" } ?? ""
            return "the last sign-in failed\(since): \(error)\(advice)"
        }
    }

    /// Sentences, one for each reason why the proxy is not ready.
    let objections: [String]
    /// Whether the proxy is not ready for a reason other than a first token request under way.
    let isUnwell: Bool

    /// - Parameter isStrict: whether a refused configuration, a client without a token and a store fault also count as
    ///   reasons. A token that expired unused does not count: the next request gets a new token.
    init(
        _ clients: [Client], isDraining: Bool, isStrict: Bool, refusal: ReloadCounts.Refusal? = nil,
        storeFault: TokenStoreError? = nil
    ) {
        var objections: [String] = []
        var pending = 0
        if isDraining { objections.append("the proxy is stopping") }
        if isStrict, refusal != nil {
            objections.append("the last configuration read has errors; the former one is in use")
        }
        if isStrict, storeFault != nil { objections.append("the store can't be read or written") }
        for client in clients {
            let name = client.status.client
            if client.isUnattended, !client.status.hasSettled {
                objections.append("client \(name) waits for the outcome of its first token request")
                pending += 1
            } else if isStrict {
                if client.status.state != .ready, client.status.state != .idle || client.status.lastError != nil {
                    objections.append("client \(name) \(client.status.state.inWords)")
                }
                if client.status.storeFault != nil {
                    objections.append("client \(name) can't keep its tokens in the store")
                }
                if client.file?.fault != nil { objections.append("client \(name) can't write its token file") }
            }
        }
        self.objections = objections
        isUnwell = objections.count > pending
    }

    var isReady: Bool { objections.isEmpty }
    var text: String { isReady ? "ready\n" : objections.map { $0 + "\n" }.joined() }
}
