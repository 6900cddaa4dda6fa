import Heimdallr
import Reports

/// Whether the proxy should get requests.
struct Readiness {
    struct Client {
        var status: HeimdallrStatus
        var isUnattended: Bool
        var signIn: SignIn
        /// See `AdministrationSources.Client`.
        var issuer: String?
        var tokenEndpoint: String?
        /// See `AdministrationSources.Client`.
        var lastRequest = LastTokenRequest()

        /// Who gives it tokens, for people.
        var server: String? { issuer ?? tokenEndpoint }
    }

    /// What stands against it, a sentence each; empty when nothing does.
    let objections: [String]
    /// One of them is more than that a first token request is still under way.
    let isUnwell: Bool

    /// - Parameter isStrict: also while anything is degraded. A client whose token expired unused is not: its next
    ///   request gets a new one, and a proxy that is sent no requests for it would never have a token again.
    init(_ clients: [Client], isDraining: Bool, isStrict: Bool, refusal: ReloadCounts.Refusal? = nil) {
        var objections: [String] = []
        var pending = 0
        if isDraining { objections.append("the proxy is stopping") }
        if isStrict, refusal != nil {
            objections.append("the configuration that was read last is wrong; the one before it is in use")
        }
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
            }
        }
        self.objections = objections
        isUnwell = objections.count > pending
    }

    var isReady: Bool { objections.isEmpty }
    var text: String { isReady ? "ready\n" : objections.map { $0 + "\n" }.joined() }
}
