import WireText

/// The clients of the running proxy, as its status shows them. A request of doctor's own says nothing of their tokens.
struct RunningClients: Sendable {
    struct Client: Sendable {
        fileprivate let status: JSONValue

        private func text(_ path: String...) -> String? {
            path.reduce(status) { $0?[$1] }?.string.map { ForeignText.printable($0) }
        }

        private var state: String { status["state"]?.string ?? "" }

        /// Whether the client has a token, or a refresh token that brings one.
        var isSignedIn: Bool { ["ready", "idle", "fetching"].contains(state) }

        /// What the running proxy says of a client without a token, or whose token an API refuses; `nil`: all is well.
        /// - Parameter failure: whether a request of doctor's own failed, which explains a backoff.
        func finding(besides failure: Bool) -> Finding? {
            let error = text("last_error", "message")
            let because = text("needs_authentication_because", "message")
            let signIn = text("last_sign_in_error", "message").map { "; the last sign-in failed: \($0)" } ?? ""
            let name = text("client") ?? ""
            switch state {
            case "needs_authentication":
                let advice =
                    text("last_error", "advice") ?? text("last_sign_in_error", "advice")
                    ?? (text("login_method") == nil ? "see heimdallr-proxy status" : "heimdallr-proxy login \(name)")
                let reason = because ?? error ?? "nobody is signed in"
                return .failed("running proxy", "this client needs a new sign-in: \(reason)\(signIn)", advice)
            case "backing_off" where !failure:
                return .failed(
                    "running proxy", "this client has no token: \(error ?? "the last attempt failed")",
                    text("last_error", "advice") ?? "see heimdallr-proxy status")
            default: return nil
            }
        }
    }

    private var clients: [String: Client] = [:]

    init(_ status: JSONValue?) {
        guard case .array(let clients)? = status?["clients"] else { return }
        for client in clients { if let name = client["client"]?.string { self.clients[name] = Client(status: client) } }
    }

    subscript(_ name: String) -> Client? { clients[name] }
}
