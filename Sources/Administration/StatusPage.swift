import Heimdallr
import Reports
import WireText

/// The page `/status`, as JSON and as text. It contains no secret: `HeimdallrStatus` has none, and the texts of servers
/// were sanitized when they were read.
struct StatusPage {
    let version: String
    let uptime: Duration
    let isDraining: Bool
    let clients: [ReadinessAnswer.Client]
    let traffic: TrafficReport
    var rules = RuleTable()
    /// The rejected configuration, while the last configuration read is not in use.
    var refusal: ReloadCounts.Refusal?
    var hasConfigurationChanged = false
    /// Files whose newer content the proxy can't use, each with the reason.
    var unusedFiles: [String] = []
    /// See `AdministrationSources`.
    var storeFault: TokenStoreError?
    var untrusting: [UntrustingProgram] = []
    /// `nil`: there is no audit stream.
    var audit: LineCounts?
    var log = LineCounts()

    var isReady: Bool { ReadinessAnswer(clients, isDraining: isDraining, isStrict: false).isReady }
    var isDegraded: Bool { !strict.isReady || hasRefusedCredential }

    /// Like `isDegraded`, but first token requests under way do not count.
    var isUnwell: Bool { strict.isUnwell || hasRefusedCredential }

    /// No reason for a probe to fail: one caller's requests would take the proxy from all others.
    private var hasRefusedCredential: Bool { upstreams.contains { !$0.lastingRefusals.isEmpty } }

    private var strict: ReadinessAnswer {
        ReadinessAnswer(clients, isDraining: isDraining, isStrict: true, refusal: refusal, storeFault: storeFault)
    }

    /// Traffic of all upstreams, and of each `TrafficGroup` that has had requests.
    var upstreams: [UpstreamTraffic] {
        traffic.upstreams.filter { !$0.name.hasPrefix("(") || $0.durations.total > 0 }
    }

    var json: JSON {
        .object([
            .init("version", .string(version)), .init("uptime_seconds", JSON(uptime)),
            .init("ready", .bool(isReady)), .init("degraded", .bool(isDegraded)),
            .init("configuration", configuration),
            .init("files_not_in_use", .array(unusedFiles.map { .string($0) })),
            .init("store_fault", JSON(storeFault?.fault)),
            .init("store_advice", JSON(storeFault.map { Sentence.plain(Advice.sentence(for: $0)) })),
            .init("requests_in_flight", .number(traffic.inFlight)),
            .init("clients", .array(clients.map(Self.json))), .init("upstreams", .array(upstreams.map(json))),
            .init("untrusting_programs", .array(untrusting.map(\.json))),
            .init("audit_lines_dropped", audit.map { .number(Int(clamping: $0.dropped)) } ?? .null),
            .init("log_lines_dropped", .number(Int(clamping: log.dropped))),
        ])
    }

    private var configuration: JSON {
        .object([
            .init("changed_since_read", .bool(hasConfigurationChanged)),
            .init("refused", .bool(refusal != nil)),
            .init("problems", .array((refusal?.problems ?? []).map { .string($0) })),
            .init("refused_seconds_ago", JSON(refusal.map { $0.at.duration(to: .now) })),
        ])
    }

    private static func json(_ client: ReadinessAnswer.Client) -> JSON {
        let status = client.status
        let error = status.lastError.map { lastError in
            JSON.object([
                .init("message", .string(lastError.description)),
                .init("advice", .string(Sentence.plain(Advice(client.signIn).sentence(for: lastError)))),
                .init("seconds_ago", JSON(status.sinceLastError)),
                .init("url", JSON(client.lastRequest.url)),
                .init("cause", JSON(client.lastRequest.cause)),
            ])
        }
        let cause = status.needsAuthenticationBecause.map { reason in
            JSON.object([.init("message", .string(reason)), .init("seconds_ago", JSON(status.sinceCause))])
        }
        let signIn = status.lastLoginError.map { error in
            JSON.object([
                .init("message", .string(error.description)),
                .init("advice", JSON(Advice(client.signIn).sentence(for: error).map(Sentence.plain))),
                .init("seconds_ago", JSON(status.sinceLastLoginError)),
            ])
        }
        var members: [JSON.Member] = [
            .init("client", .string(status.client)), .init("grant_type", .string(GrantName.short(status.grantType))),
            .init("issuer", JSON(client.issuer)), .init("token_endpoint", JSON(client.tokenEndpoint)),
            .init("login_method", JSON(status.loginMethod?.rawValue)), .init("login_url", JSON(client.signIn.url)),
            .init("redirect_uri", JSON(client.signIn.redirectURI)), .init("signed_in_as", JSON(status.signedInAs)),
            .init("scope", .array(status.scope.map { .string($0) })),
            .init("scope_not_granted", .array(status.scopeNotGranted.map { .string($0) })),
            .init("state", .string(status.state.rawValue)), .init("expires_in_seconds", JSON(status.expiresIn)),
            .init("expires_by", JSON(status.endsBy?.rawValue)),
            .init("has_refresh_token", .bool(status.hasRefreshToken)),
            .init("refresh_token_expires_in_seconds", JSON(status.refreshTokenExpiresIn)),
            .init("seconds_since_last_success", JSON(status.sinceLastSuccess)),
            .init("last_error", error ?? .null),
            .init("needs_authentication_because", cause ?? .null), .init("last_sign_in_error", signIn ?? .null),
            .init("next_attempt_in_seconds", JSON(status.nextAttemptIn)), .init("waiters", .number(status.waiters)),
            .init("store_fault", JSON(status.storeFault)), .init("has_foreign_record", .bool(status.hasForeignRecord)),
        ]
        if let enrolment = status.enrolment { members.append(.init("enrolment", enrolment.json)) }
        if let callers = status.callers { members.append(.init("callers", .number(callers))) }
        if let file = client.file {
            members.append(
                .init(
                    "file",
                    ["path": .string(file.path), "is_written": .bool(file.isWritten), "fault": JSON(file.fault)]))
        }
        return .object(members)
    }

    /// Returns the distinct texts of an upstream's rules in the rules' order, at most `most`.
    func texts(
        of upstream: UpstreamTraffic, most: Int = .max, _ text: (AdministrationSources.Rule) -> String?
    ) -> [String] {
        var found: [String] = []
        for rule in rules.rules(of: upstream.name, upstream.client) {
            if let text = text(rule), !found.contains(text), found.count < most { found.append(text) }
        }
        return found
    }

    /// Returns the destinations that the configuration names.
    func destinations(of upstream: UpstreamTraffic) -> [String] { texts(of: upstream, \.destination) }

    /// Returns the credentials that the upstream's rules inject, without values.
    func injections(of upstream: UpstreamTraffic) -> [String] {
        texts(of: upstream) { $0.injection.isEmpty ? nil : $0.injection }
    }

    /// Returns the injected credentials of an upstream without a client; `nil` if there are none.
    func fixedCredentials(of upstream: UpstreamTraffic) -> String? {
        let found = upstream.client == nil ? injections(of: upstream) : []
        return found.isEmpty ? nil : found.joined(separator: "; ")
    }

    // MARK: For people

    var text: String {
        var text = "heimdallr-proxy \(version), running for \(Self.words(uptime)), "
        text += isDraining ? "stopping" : !isReady ? "not ready yet" : isDegraded ? "degraded" : "ready"
        text += "\n"
        if let refusal {
            text +=
                "\nThe configuration was read again \(Self.words(refusal.at.duration(to: .now))) ago and has errors. The "
                + "former one is in use:\n"
            for problem in refusal.problems { text += "  \(problem)\n" }
            text += "  what to do: correct it, then run heimdallr-proxy reload\n"
        }
        if hasConfigurationChanged {
            text += "\nThe configuration file has changed since it was read.\n"
            text += "  what to do: run heimdallr-proxy reload\n"
        }
        if !unusedFiles.isEmpty { text += "\nThe last good content of these files stays in use:\n" }
        for file in unusedFiles { text += "  \(file)\n" }
        if let storeFault {
            text += "\nStore: \(Sentence.plain(storeFault.fault))\n"
            text += "  what to do: \(Sentence.plain(Advice.sentence(for: storeFault)))\n"
        }
        text += lostLines
        if clients.isEmpty { text += "\nThere are no clients.\n" }
        for client in clients { text += "\n" + Sentence.plain(Self.text(client)) }
        if !upstreams.isEmpty { text += "\nUpstreams:\n" }
        for upstream in upstreams { text += "  " + self.text(upstream) + "\n" }
        if !untrusting.isEmpty { text += "\nPrograms that got no TLS from the proxy:\n" }
        for program in untrusting { text += "  " + program.text + "\n" }
        return text
    }

    /// Lost lines of the records since the start.
    private var lostLines: String {
        var text = ""
        for (name, count, advice) in [
            ("Audit", audit?.dropped ?? 0, "see the log for the reason: a full disk, or nobody reads what is written"),
            ("Log", log.dropped, "see why standard error can't be written, or is read too slowly"),
        ] where count > 0 {
            let lines = count == 1 ? "1 line was" : "\(count) lines were"
            text += "\n\(name): \(lines) lost since the start\n  what to do: \(advice)\n"
        }
        return text
    }

    private static func text(_ client: ReadinessAnswer.Client) -> String {
        let status = client.status
        var text = "Client \(status.client) (\(GrantName.short(status.grantType))) \(status.state.inWords)\n"
        if status.isServedAfterLoss { text += "  requests get the last token until it ends, and 503 after that\n" }
        if let callers = status.callers {
            text += "  each caller's own token is exchanged; callers now: \(callers)\n"
        }
        for fact in status.enrolment?.facts ?? [] { text += "  \(fact.name): \(fact.text)\n" }
        if let who = status.signedInAs { text += "  signed in: \(who)\n" }
        if let ends = status.endsBy {
            let left = status.expiresIn.map { "expires in \(words($0)), " } ?? "has "
            text += "  token \(left)\(ends.inWords)\n"
        }
        let shortfall = Shortfall(status)
        if let words = shortfall.untilWords { text += "  \(words): there is no refresh token\n" }
        if let words = shortfall.scopeWords { text += "  \(words)\n" }
        if let left = status.refreshTokenExpiresIn { text += "  the sign-in itself ends in \(words(left))\n" }
        if let since = status.sinceLastSuccess { text += "  last success \(words(since)) ago\n" }
        if let error = status.lastError {
            text += "  last error"
            if let since = status.sinceLastError { text += " \(words(since)) ago" }
            text += ": \(error)\n"
            if let url = client.lastRequest.url { text += "  asked: \(url)\n" }
            if let cause = client.lastRequest.cause { text += "  cause: \(cause)\n" }
            text += "  what to do: \(Advice(client.signIn).sentence(for: error))\n"
        } else if status.state == .needsAuthentication {
            text += "  what to do: \(client.signIn.advice)\n"
        }
        if let cause = status.cause {
            text += "  because"
            if let since = status.sinceCause { text += ", \(words(since)) ago," }
            text += " the server refused: \(cause)\n"
        }
        if status.isTokenRefused { text += "  because \(HeimdallrStatus.tokenRefusal(status.endsBy))\n" }
        if let words = client.lastSignIn { text += "  \(words)\n" }
        if status.state == .needsAuthentication, status.enrolment == nil, let uri = client.signIn.redirectURI {
            text += "  redirect URI to register at the server: \(uri)\n"
        }
        if let next = status.nextAttemptIn { text += "  next token request in \(words(next))\n" }
        if status.waiters > 0 {
            text += "  \(status.waiters) request\(status.waiters == 1 ? " waits" : "s wait") for a token\n"
        }
        if let fault = status.storeFault { text += "  store: \(fault)\n" }
        if let file = client.file {
            text +=
                "  token file \(file.path): \(file.fault ?? (file.isWritten ? "written" : "removed, there is no token"))\n"
        }
        if status.hasForeignRecord { text += "  store: \(Advice.foreignRecord)\n" }
        return text
    }

    /// `3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`.
    static func words(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        let units: [(size: Int64, name: String)] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")]
        guard let index = units.firstIndex(where: { seconds >= $0.size }) else { return "0 s" }
        var text = "\(seconds / units[index].size) \(units[index].name)"
        if index + 1 < units.count {
            let rest = seconds % units[index].size / units[index + 1].size
            if rest > 0 { text += " \(rest) \(units[index + 1].name)" }
        }
        return text
    }
}
