import Heimdallr

/// What `/` shows, as the templates want it. Nothing in it is a secret: see `StatusPage`.
struct OverviewModel {
    let status: StatusPage
    /// For the forms; `nil` where nobody can send any.
    let formToken: String?

    var values: [String: Any] {
        let upstreams = Self.failuresFirst(status.upstreams) { StatusPage.counts($0).failed > 0 ? 0 : 1 }.map {
            values($0)
        }
        let clients = Self.failuresFirst(status.clients) { Self.urgency($0.status) }.map { values($0) }
        return [
            "title": title, "kind": "overview", "reload": 30, "version": status.version,
            "overall": ["word": overall.word, "tone": overall.tone],
            "uptime": StatusPage.words(status.uptime), "inFlight": status.traffic.inFlight,
            "hasClients": !clients.isEmpty, "clients": clients,
            "hasUpstreams": !upstreams.isEmpty, "upstreams": upstreams,
        ]
    }

    private var overall: (word: String, tone: String) {
        if status.isDraining { return ("Stopping", "warn") }
        if !status.isReady { return ("Not ready yet", "busy") }
        guard status.isDegraded else { return ("Ready", "good") }
        return ("Degraded", status.clients.contains { Self.urgency($0.status) == 0 } ? "bad" : "warn")
    }

    /// What needs somebody stands first; otherwise the order of the configuration stays.
    private static func failuresFirst<Row>(_ rows: [Row], _ urgency: (Row) -> Int) -> [Row] {
        rows.enumerated().sorted { (urgency($0.element), $0.offset) < (urgency($1.element), $1.offset) }.map(\.element)
    }

    private static func urgency(_ client: HeimdallrStatus) -> Int {
        if client.state == .backingOff || client.lastError != nil || client.storeFault != nil { return 0 }
        return client.state == .needsAuthentication ? 1 : 2
    }

    /// What a tab says while nobody looks at it.
    private var title: String {
        let waiting = status.clients.count { $0.status.state == .needsAuthentication }
        return waiting == 0 ? overall.word : "\(waiting) to sign in"
    }

    // MARK: A client

    private func values(_ listed: Readiness.Client) -> [String: Any] {
        let client = listed.status
        let (word, tone) = client.state.onThePage
        let needsLogin = client.state == .needsAuthentication
        var values: [String: Any] = [
            "name": client.client, "grant": GrantName.inWords(client.grantType), "word": word, "tone": tone,
            "hasScopes": !client.scope.isEmpty, "scopes": client.scope,
            "nobody": client.loginMethod == nil ? "by itself" : needsLogin ? "nobody" : "somebody",
            "urgent": needsLogin, "failing": Self.urgency(client) == 0,
            "signIn": listed.signIn.url != nil && client.state != .stopped,
            "signInWord": needsLogin ? "Sign in" : "Sign in again",
            "canRefresh": client.loginMethod == nil && client.state != .stopped || client.hasRefreshToken,
            "canSignOut": client.loginMethod != nil && (client.expiresIn != nil || client.hasRefreshToken),
        ]
        if let formToken { values["csrf"] = formToken }
        if let who = client.signedInAs { values["who"] = who }
        if let issuer = listed.issuer { values["issuer"] = issuer }
        if let left = client.expiresIn {
            values["expires"] = StatusPage.words(left)
            values["seconds"] = left.components.seconds
        }
        let shortfall = Shortfall(client)
        if let left = client.refreshTokenExpiresIn {
            values["refreshEnds"] = "sign-in ends in \(StatusPage.words(left))"
        } else if let words = shortfall.untilWords {
            values["refreshEnds"] = words
        }
        if let words = shortfall.scopeWords { values["notGranted"] = words }
        if let since = client.sinceLastSuccess { values["refreshed"] = StatusPage.words(since) }
        if client.waiters > 0 {
            values["waiters"] = "\(client.waiters) request\(client.waiters == 1 ? " waits" : "s wait")"
        }
        if let note = note(listed) { values["note"] = note } else { values["calm"] = true }
        values["facts"] = Self.facts(listed)
        return values
    }

    /// The last error, with what to do about it.
    private func note(_ listed: Readiness.Client) -> [String: Any]? {
        let client = listed.status
        var also: [String] = []
        if client.lastError != nil {
            let last = listed.lastRequest
            let cause = last.cause.map { ": \($0)" } ?? ""
            if let url = last.url { also.append("Asked: \(url)\(cause)") }
            if let next = client.nextAttemptIn {
                also.append("The next token request is due in \(StatusPage.words(next)).")
            }
        }
        if let fault = client.storeFault { also.append(Sentence.ended("Store: \(fault)")) }
        if client.state == .needsAuthentication, let uri = listed.signIn.redirectURI {
            also.append("Redirect URI to register at the server: \(uri)")
        }
        var note: [String: Any] = also.isEmpty ? [:] : ["also": also.map { ["line": Self.parts($0)] }]
        note["short"] = ShortCause.text(client)
        if let error = client.lastError {
            note["tone"] = "bad"
            note["headline"] =
                "Last error" + (client.sinceLastError.map { ", \(StatusPage.words($0)) ago:" } ?? ":")
            note["detail"] = Self.parts(
                Sentence.whole("\(error)") + (client.cause.map { " The server refused: \($0)." } ?? ""))
            note["hasTodo"] = true
            note["todo"] = Self.parts(Sentence.whole(Advice.sentence(for: error, signIn: listed.signIn)))
            return note
        }
        if client.loginMethod != nil, listed.signIn.url == nil, client.state == .needsAuthentication {
            note["command"] = listed.signIn.command
        }
        if client.state == .needsAuthentication {
            note["tone"] = "warn"
            if client.isTokenRefused {
                note["headline"] = "An API refuses the token."
                note["detail"] = Self.parts(
                    "It said invalid_token, and there is no refresh token: only a sign-in brings a new one. Requests go "
                        + "on with the old one, and the API’s 401 is their answer.")
                return note
            }
            note["headline"] = "Nobody is signed in."
            note["detail"] = Self.parts(
                "Requests that want this client’s token get 503 until somebody does."
                    + (client.cause.map { " The server refused: \($0)." } ?? ""))
            return note
        }
        if client.storeFault != nil {
            note["tone"] = "bad"
            note["headline"] = "Tokens are kept in memory only."
            return note
        }
        return nil
    }

    /// What a telephone does not show beside it.
    private static func facts(_ listed: Readiness.Client) -> String {
        let client = listed.status
        var facts = [GrantName.inWords(client.grantType)]
        if let issuer = listed.issuer { facts.append(issuer) }
        if !client.scope.isEmpty { facts.append("scopes: \(client.scope.joined(separator: ", "))") }
        let shortfall = Shortfall(client)
        facts += [shortfall.scopeWords, shortfall.untilWords].compactMap { $0 }
        if let left = client.refreshTokenExpiresIn { facts.append("sign-in ends in \(StatusPage.words(left))") }
        facts.append("last refresh: \(client.sinceLastSuccess.map { "\(StatusPage.words($0)) ago" } ?? "never")")
        return facts.joined(separator: " · ")
    }

    private static func parts(_ text: String) -> [[String: Any]] {
        Sentence.parts(text).map { [$0.isCode ? "code" : "words": $0.text] }
    }

    // MARK: An upstream

    private func values(_ upstream: TrafficReport.Upstream) -> [String: Any] {
        let (total, failed) = StatusPage.counts(upstream)
        let place = TrafficName(upstream.name)
        var values: [String: Any] = [
            "name": place == .upstream
                ? upstream.name : place.inWords.prefix(1).uppercased() + place.inWords.dropFirst(),
            "requests": total, "errors": failed, "failed": failed > 0, "isUpstream": place == .upstream,
        ]
        if let failure = upstream.lastFailure {
            let places = status.destinations(of: upstream)
            values["failure"] =
                (places.isEmpty ? "" : "\(places.joined(separator: " or ")): ") + failure.cause
            values["failureAge"] = "\(StatusPage.words(failure.ago)) ago"
        }
        let rules = status.rules.filter { $0.upstream == upstream.name && $0.client == upstream.client }
        values["destinations"] = Self.distinct(rules.map { $0.destination ?? "https, the host that was asked for" })
        let examples = Self.distinct(rules.map(\.example))
        values["hasExamples"] = !examples.isEmpty
        values["examples"] = examples
        values["hasMore"] = !examples.isEmpty || upstream.lastFailure != nil
        // Two may have one host, and another client.
        values["id"] = upstream.name + (upstream.client.map { "-" + $0 } ?? "")
        if let client = upstream.client { values["client"] = client }
        var codes = Self.codes(upstream.ownRequests)
        if let ours = Self.codes(upstream.answeredByProxy) {
            codes = (codes.map { $0 + "; " } ?? "") + ours + " by the proxy itself"
        }
        if let codes { values["codes"] = codes }
        if let chart = LatencyChart(upstream.ownDurations) { values["chart"] = chart.values }
        return values
    }

    private static func codes(_ requests: [(code: Int, count: UInt64)]) -> String? {
        let codes = requests.filter { $0.code >= 400 }.sorted { $0.count > $1.count }.prefix(4)
        return codes.isEmpty ? nil : codes.map { "\($0.count) × \($0.code)" }.joined(separator: ", ")
    }

    /// At most four: a rule for each path of a host need not fill the page.
    private static func distinct(_ texts: [String]) -> [String] {
        var kept: [String] = []
        for text in texts where !kept.contains(text) && kept.count < 4 { kept.append(text) }
        return kept
    }
}

extension HeimdallrStatus.State {
    /// One or two words, and the class of their colour.
    var onThePage: (word: String, tone: String) {
        switch self {
        case .starting: ("Starting", "busy")
        case .ready: ("Ready", "good")
        case .fetching: ("Getting a token", "busy")
        case .idle: ("Idle", "still")
        case .backingOff: ("No token", "bad")
        case .needsAuthentication: ("Sign-in needed", "warn")
        case .stopped: ("Stopped", "still")
        }
    }
}
