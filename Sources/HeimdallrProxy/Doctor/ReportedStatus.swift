import Administration
import Configuration
import WireText

/// The status of the proxy that runs with this configuration. It may use other credentials, another server or another
/// network than this process, and a request of doctor's own says nothing of its tokens. Empty without a running proxy.
struct ReportedStatus: Sendable {
    private let status: JSONValue?

    /// Blocks.
    init(_ configuration: Configuration) {
        status = configuration.admin.flatMap { admin in
            let paths = AdminOptions.sockets(of: admin, environment: ProcessEnvironment.all)
            return AdminClient.first(of: paths, "GET", "/status", timeout: 2).flatMap { try? JSONParser.parse($0.body) }
        }
    }

    /// - Parameter readsFile: whether the configuration is a file.
    func findings(readsFile: Bool) -> [Finding] {
        var findings: [Finding] = []
        if readsFile, status?["configuration"]?["changed_since_read"] == .bool(true) {
            let text = "the running proxy has read another version of the configuration file"
            findings.append(.warning("file", text, "run heimdallr-proxy reload"))
        }
        if let fault = status?["store_fault"]?.string {
            let advice = status?["store_advice"]?.string.map { ForeignText.printable($0) }
            findings.append(
                .failed(
                    "store", "the running proxy says: \(ForeignText.printable(fault))",
                    advice ?? "check what the proxy can reach, as its user"))
        }
        // The other checks read the files anew, but the proxy uses earlier contents of these.
        guard case .array(let files)? = status?["files_not_in_use"] else { return findings }
        return findings
            + files.compactMap(\.string).map { file in
                .warning(
                    "file", "the running proxy uses an earlier content of \(ForeignText.printable(file))",
                    "correct this file; the proxy reads it again by itself")
            }
    }

    /// What the running proxy says of refused credentials of upstreams with this host.
    func refusals(of host: String) -> [Finding] {
        guard case .array(let upstreams)? = status?["upstreams"] else { return [] }
        return upstreams.filter { $0["upstream"]?.string == host }.flatMap { upstream -> [Finding] in
            guard case .array(let refused)? = upstream["refused_credentials"] else { return [] }
            return refused.compactMap { credential in
                guard let message = credential["message"]?.string, let advice = credential["advice"]?.string else {
                    return nil
                }
                return .failed(
                    "running proxy", ForeignText.printable(message), ForeignText.printable(advice))
            }
        }
    }

    subscript(_ client: String) -> Client? {
        guard case .array(let clients)? = status?["clients"] else { return nil }
        return clients.first { $0["client"]?.string == client }.map(Client.init)
    }

    struct Client: Sendable {
        fileprivate let status: JSONValue

        fileprivate init(_ status: JSONValue) { self.status = status }

        private func text(_ path: String...) -> String? {
            path.reduce(status) { $0?[$1] }?.string.map { ForeignText.printable($0) }
        }

        private var state: String { status["state"]?.string ?? "" }

        /// Whether the client has a token, or a refresh token that brings one.
        var isSignedIn: Bool { ["ready", "idle", "fetching"].contains(state) }

        /// The last challenge of the client's API, with the address that got it.
        var challenge: (url: String, metadata: String?)? {
            status["enrolment"]?["url"]?.string.map { ($0, status["enrolment"]?["resource_metadata"]?.string) }
        }

        /// What the running proxy says of a client without a token, or whose token an API refuses; `nil`: all is well.
        /// - Parameter failure: whether a request of doctor's own failed, which explains a backoff.
        func finding(besides failure: Bool) -> Finding? {
            let error = text("last_error", "message")
            let because = text("needs_authentication_because", "message")
            if let fault = text("store_fault") {
                let advice = "let the proxy write there: until then a restart loses these tokens"
                return .failed("store", "the running proxy can't save this client's tokens: \(fault)", advice)
            }
            let signIn = text("last_sign_in_error", "message").map { "; the last sign-in failed: \($0)" } ?? ""
            switch state {
            case "needs_authentication":
                let login = text("login_method") == nil ? nil : text("client").map { "heimdallr-proxy login \($0)" }
                let advice =
                    text("last_error", "advice") ?? text("last_sign_in_error", "advice") ?? login
                    ?? "see heimdallr-proxy status"
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
}
