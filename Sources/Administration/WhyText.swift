import Heimdallr
import Reports

struct WhyText {
    let model: AdminModel

    /// Whether the proxy would answer all callers itself.
    func isRefused(_ route: RouteExplanation) -> Bool {
        switch route {
        case .refused: true
        case .callers(let some, let others): (some + [others]).allSatisfy { isRefused($0) }
        case .unmatched, .tunnel: false
        case .upstream(let route): route.client.flatMap { refusal(of: $0) } != nil
        }
    }

    func text(_ route: RouteExplanation) -> String {
        var text = Sentence.plain(body(route))
        if case .refused = route { return text }
        let users = model.sources.users
        if !users.isEmpty {
            text += "for          users of proxy.users (\(users.joined(separator: ", "))); all others get 407\n"
        }
        return text
    }

    private func body(_ route: RouteExplanation) -> String {
        switch route {
        case .refused(let status, _, let reason):
            return "The proxy itself would answer \(status): \(reason)\n"
        case .callers(let some, let others):
            return "It depends on the caller.\n\n" + some.map { body($0) + "\n" }.joined()
                + "All others:\n\n" + body(others)
        case .unmatched(let destination, let https):
            return
                "rule         unmatched: forward\ndestination  \(destination)\nclient       none: forwarded unsigned\n"
                + "https        \(https.inWords("list the host in proxy.tunnels"))\n"
        case .tunnel(let destination):
            return "rule         proxy.connect: tunnel\ndestination  \(destination), through a tunnel\n"
                + "client       none: an https:// URL goes by CONNECT, which carries no token\n"
        case .upstream(let route):
            var text = "rule         \(route.rule)\ndestination  \(route.destination)\n"
            text += "https        \(route.https.inWords("write intercept: true at the upstream"))\n"
            guard let name = route.client, let client = model.sources.client(named: name) else {
                guard !route.injection.isEmpty else {
                    return text + "client       none: \(route.unsigned ?? "forwarded unsigned")\n"
                }
                return text + "client       none\nput on as    \(route.injection)\n"
            }
            let status = client.heimdallr.status()
            text += "client       \(name) (\(GrantName.short(status.grantType))) \(status.state.inWords)\n"
            text += "put on as    \(route.injection)\n"
            for fact in status.enrolment?.facts ?? [] {
                text += fact.name + String(repeating: " ", count: max(1, 13 - fact.name.count)) + fact.text + "\n"
            }
            let refusal = refusal(of: name)
            if let refusal {
                text += "answer       \(refusal.status) \(refusal.title)\n"
                if let url = refusal.loginURL { text += "login_url    \(url)\n" }
            }
            if status.state == .ready || status.endsBy != nil, let since = status.sinceLastSuccess {
                text += "token from   \(StatusPage.words(since)) ago\n"
            }
            if let ends = status.endsBy {
                text += "expires in   \(status.expiresIn.map { "\(StatusPage.words($0)), " } ?? "")\(ends.inWords)\n"
            }
            return text + trouble(status, client)
        }
    }

    private func trouble(_ status: HeimdallrStatus, _ client: AdministrationSources.Client) -> String {
        let signIn = model.signIn(of: client)
        var text = ""
        if let reason = status.needsAuthenticationBecause { text += "because      \(reason)\n" }
        if let error = status.lastError {
            text += "last error   \(error)\n"
            let last = client.lastRequest()
            if let url = last.url { text += "asked        \(url)\n" }
            if let cause = last.cause { text += "cause        \(cause)\n" }
            text += "what to do   \(Advice(signIn).sentence(for: error))\n"
        } else if status.state == .needsAuthentication {
            text += "what to do   \(signIn.advice)\n"
        }
        return text
    }

    /// Returns the proxy's own answer while no token is available; `nil` if a request gets a token, or waits for one.
    func refusal(of name: String) -> TokenRefusal? {
        guard let client = model.sources.client(named: name) else { return nil }
        let status = client.heimdallr.status()
        let error: HeimdallrError
        switch status.state {
        case .needsAuthentication where status.isServedAfterLoss: return nil
        // The proxy still sends the token that the API refused, and passes on the API's answer. If the refresh token had
        // ended before, requests get the need for a sign-in.
        case .needsAuthentication where status.isTokenRefused && !client.heimdallr.awaitsPerson: return nil
        case .needsAuthentication: error = .needsAuthentication
        case .stopped: error = .stopped
        case .backingOff: error = status.lastError ?? .deadlineExceeded(retryAfter: .zero)
        case .starting, .ready, .fetching, .idle: return nil
        }
        return model.sources.refusal(name, error, model.signIn(of: client).hint)
    }
}

extension HTTPSTreatment {
    /// - Parameter remedy: makes https:// URLs work.
    fileprivate func inWords(_ remedy: String) -> String {
        switch self {
        case .intercepted: "intercepted: https:// URLs get the same, in programs that trust the proxy's root"
        case .tunnelled: "tunnelled: https:// URLs get no token"
        case .refused: "refused: say http:// in the program, or \(remedy)"
        }
    }
}
