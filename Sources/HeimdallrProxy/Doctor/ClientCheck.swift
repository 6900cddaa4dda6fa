import Administration
import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import HeimdallrCurl
import Reactor
import Reports
import WireText

/// Checks one OAuth client: the server's metadata, its endpoints, a token request, and the clock.
struct ClientCheck: Sendable {
    let settings: ClientSettings
    let client: Heimdallr
    let notes: TokenRequestNotes
    let tap: Tap
    let options: PoolOptions
    let asksForTokens: Bool
    let loop: EventLoop
    /// The client at the running proxy; `nil` without one.
    let running: ReportedStatus.Client?
    /// Checks of `client: auto`; `nil` for other clients.
    var enrolment: EnrolmentCheck?
    let trial: AssertionTrial

    func diagnosis() async -> Diagnosis {
        let findings = if let enrolment { await enrolment.findings() } else { await findings() }
        client.shutdown()
        let hasFailed = findings.contains { $0.outcome == .failed }
        let more = [running?.finding(besides: hasFailed), clock()].compactMap(\.self)
        return Diagnosis(kind: .client, name: settings.name, findings: findings + more)
    }

    private func findings() async -> [Finding] {
        let (document, fault) = await metadata()
        async let token = tokenFindings()
        let servers = servers(document)
        var connections = await Checks.all(servers) { await check($0) }
        let results = await token
        for (index, server) in servers.enumerated() where !connections[index].hasFailed {
            if await wantsTLS(server) { connections[index].append(ConnectionCheck.schemeFault) }
        }
        let failed = connections.flatMap(\.self).filter { $0.outcome == .failed }
        let hasToken = results.contains { $0.check == "token" && $0.outcome == .good }
        let rest = fault + (document.map { findings(of: $0, hasToken: hasToken) } ?? []) + results
        return zip(servers, connections).flatMap { $1.at($0.title) } + Self.withoutConsequences(rest, of: failed)
    }

    /// Marks a failure as skipped if an earlier fault explains it, so that each fault is shown once.
    private static func withoutConsequences(_ findings: [Finding], of failed: [Finding]) -> [Finding] {
        let hasWrongScheme = failed.contains { $0.isSame(as: ConnectionCheck.schemeFault) }
        var hasCause = !failed.isEmpty
        return findings.map { finding in
            guard finding.outcome == .failed else { return finding }
            if hasWrongScheme || hasCause && finding.isConsequence {
                return .skipped(finding.check, "skipped: see the failure above")
            }
            hasCause = true
            return finding
        }
    }

    /// Returns the server's metadata, and its fault; neither without an `issuer`.
    private func metadata() async -> (document: ServerMetadata?, fault: [Finding]) {
        do throws(DiscoveryFault) { return (try await client.findMetadata(), []) } catch {
            let advice = Advice(client.status()).sentence(for: error)
            let isConsequence = if case .network = error { true } else { false }
            return (nil, [.failed("metadata", "\(error)", advice, isConsequence: isConsequence)])
        }
    }

    /// Compares the settings with the server's metadata (RFC 8414), whose issuer was already checked.
    /// - Parameter hasToken: whether the server issued a token. The server's lists of grants and methods then don't matter.
    private func findings(of document: ServerMetadata, hasToken: Bool) -> [Finding] {
        var findings: [Finding] = []
        func warn(_ text: String, _ advice: String) { findings.append(.warning("metadata", text, advice)) }
        // A public client does not authenticate, whatever methods the server lists.
        let method = settings.authMethod == .none ? nil : settings.authMethod.rawValue
        for (listed, name, own, key) in [
            (document.grantTypes, "grant", client.status().grantType, "grant_type"),
            (document.authMethods, "authentication method", method, "token_endpoint_auth_method"),
        ] {
            guard !hasToken, let own, let listed, !listed.contains(own) else { continue }
            let shown = listed.isEmpty ? "none" : ForeignText.printable(listed.joined(separator: ", "))
            warn(
                "the server does not list the \(name) \(own); it lists \(shown)",
                "check `\(key)`, and whether the server allows it for this client; some lists are incomplete")
        }
        let plain = document.named.filter { WebURL.scheme(of: $0.url) != .https }
        if let first = plain.first {
            let names = plain.map(\.name).joined(separator: ", ")
            let example = ForeignText.printable(first.url, most: 80) + (plain.count > 1 ? ", …" : "")
            let text = "no https:// address: \(names) (\(example))"
            if settings.allowPlaintext {
                findings.append(.good("metadata", text + "; allow_plaintext permits that"))
            } else {
                warn(text, "let the server publish https:// addresses, or write them into the configuration")
            }
        }
        // An address that can't be used is the reason why the configuration has another one.
        if let own = settings.tokenEndpoint, let other = document.endpoints[.token], own != other,
            !DiscoveryFault.isTemplate(other), settings.allowPlaintext || WebURL.scheme(of: other) == .https
        {
            warn(
                "the server names a different token_endpoint: \(ForeignText.printable(other))",
                "remove `token_endpoint` from the configuration, unless the difference is intended")
        }
        return findings.isEmpty ? [.good("metadata", "matches the issuer and the settings")] : findings
    }

    /// Endpoints with the same origin.
    private struct Server: Sendable {
        var names: [String]
        /// `nil` if the URL of the endpoint is invalid.
        var origin: Origin?
        var url: String

        var title: String {
            let names = names.joined(separator: ", ")
            guard let origin else { return "\(names) \(ForeignText.printable(url.prefix { $0 != "?" }, most: 80))" }
            return ForeignText.printable("\(names) at \(origin.scheme.rawValue)://\(origin.host):\(origin.port)")
        }
    }

    private func servers(_ document: ServerMetadata?) -> [Server] {
        let configured = settings.endpoints
        let others = document?.named ?? []
        var servers: [Server] = []
        for (name, url) in configured + others.filter({ other in !configured.contains { $0.name == other.name } }) {
            let origin = Origin(url: url)
            if let origin, let index = servers.firstIndex(where: { $0.origin == origin }) {
                servers[index].names.append(name)
            } else {
                servers.append(Server(names: [name], origin: origin, url: url))
            }
        }
        return servers
    }

    private func check(_ server: Server) async -> [Finding] {
        if let origin = server.origin { return await connection(origin).findings() }
        return [.failed("address", "this is neither an http nor an https address", "write it as https://HOST/PATH")]
    }

    private func connection(_ origin: Origin) -> ConnectionCheck {
        ConnectionCheck(origin: origin, options: options, advice: Advice(client.status()), loop: loop)
    }

    /// Whether the port of an http:// address speaks TLS. Any answer except 400 shows plain HTTP: a TLS
    /// server answers plain HTTP with 400, if at all.
    private func wantsTLS(_ server: Server) async -> Bool {
        guard let origin = server.origin, origin.scheme == .http,
            !tap.answers.contains(where: { $0.status != 400 && Origin(url: $0.url) == origin })
        else { return false }
        return await connection(origin).wantsTLS()
    }

    private func tokenFindings() async -> [Finding] {
        if let reason = reasonNotToAsk {
            return [.skipped("token", "not requested\(reason)")] + (await endpointFindings())
        }
        let begin = ContinuousClock.now
        do throws(HeimdallrError) {
            let token = try await client.refreshedToken(waiting: settings.timeout + .seconds(3))
            let left = max(0, ContinuousClock.now.duration(to: token.expiresAt).components.seconds)
            var text = "received: \(token.type), "
            text += token.endsBy == .open ? "" : "valid for \(left) s"
            if token.endsBy != .stated { text += "\(token.endsBy == .open ? "" : ", ")\(token.endsBy.inWords)" }
            if !token.scope.isEmpty { text += ", scope \(ForeignText.printable(token.scope.joined(separator: " ")))" }
            if settings.signsClientAssertion { text += "; the server takes \(AssertionTrial.keys(of: settings))" }
            let finding = Finding.good("token", text, after: begin.duration(to: .now))
            let missing = client.status().scopeNotGranted
            guard !missing.isEmpty else { return [finding] }
            let advice = "allow this scope for the client at the server, or remove it from `scope`"
            return [finding, .warning("scope", "not granted: \(missing.joined(separator: ", "))", advice)]
        } catch {
            var finding = failure(error)
            if Self.refusesClient(error), let advice = await trial.advice() { finding.advice = advice }
            return [finding]
        }
    }

    /// Whether the server refuses the client's authentication. Some servers say so only by the status.
    private static func refusesClient(_ error: HeimdallrError) -> Bool {
        switch error {
        case .clientRefused(.refused(let refusal), _), .tokenEndpointUnavailable(.refused(let refusal), _):
            [.invalidClient, .unauthorizedClient].contains(refusal.code) || refusal.status == 401
        default: false
        }
    }

    private func failure(_ error: HeimdallrError) -> Finding {
        var text = "none: \(error)"
        if let cause = notes.current.cause { text += "; \(cause)" }
        if let answer = tap.answers.last(where: { $0.method == "POST" }) {
            text += " (status \(answer.status)\(answer.pageType.map { ", Content-Type \($0)" } ?? ""))"
        }
        var advice = Advice(client.status()).sentence(for: error)
        var isConsequence = false
        switch error {
        case .deadlineExceeded:
            advice = "check that the server answers within the client's `timeout`"
            isConsequence = true
        case .tokenEndpointUnavailable(.network, _), .tokenEndpointUnavailable(.discovery, _): isConsequence = true
        default: break
        }
        // Nothing tries again here.
        if advice.hasPrefix("wait") {
            advice = "read the server's log, or ask its operator; a running proxy tries again by itself"
        }
        return .failed("token", text, advice, isConsequence: isConsequence)
    }

    /// Reason not to request a token, to follow "not requested". `nil` if a request needs no person, no caller's token
    /// and no refresh token, and the command has no --no-token.
    private var reasonNotToAsk: String? {
        if !asksForTokens { return ", because of --no-token" }
        if client.loginMethod != nil, running?.isSignedIn == true {
            return ": a person is signed in at the running proxy"
        }
        switch client.loginMethod {
        case .browser, .implicit, .device:
            return ": somebody has to sign in (heimdallr-proxy login \(settings.name))"
        case .password: return ": somebody has to type a password"
        case nil: break
        }
        if client.exchangesCallers { return ": each caller's own token is exchanged" }
        return settings.grantType == .refreshToken
            ? ": that would spend the refresh token, which may be valid only once" : nil
    }

    /// Sends the token endpoint a HEAD request to read its clock. Returns a finding only if no endpoint is known.
    private func endpointFindings() async -> [Finding] {
        let url: String?
        do throws(LoginError) { url = try await client.findEndpoints().last?.url } catch {
            switch error {
            case .noEndpoint, .discovery(.missing), .discovery(.unusable):
                let advice = Advice(client.status()).sentence(for: error) ?? "write the endpoint"
                return [.failed("endpoint", "\(error)", advice)]
            // The finding `metadata` shows other faults.
            default: return []
            }
        }
        guard let url else { return [] }
        let headers = settings.headers.map { HeimdallrHTTPField(name: $0.name, value: $0.value) }
        var request = HeimdallrHTTPRequest(method: "HEAD", url: url, headers: headers)
        request.timeout = ConnectionCheck.limit
        let curl = CurlHTTPClient(BufferedClient(options: options, loop: loop))
        _ = try? await NotingHTTPClient(client: curl, last: notes, tap: tap).send(request)
        return []
    }

    private func clock() -> Finding {
        guard let answer = tap.answers.last(where: { $0.date != nil }) ?? tap.answers.last else {
            return .skipped("clock", "no server answered, so there is no time to compare with")
        }
        return .clock(date: answer.date, age: answer.age, now: answer.at)
    }
}

extension ServerMetadata {
    /// The endpoints that a client may use, with their names.
    fileprivate var named: [(name: String, url: String)] {
        Endpoint.allCases.filter { $0 != .registration }.compactMap { endpoint in
            endpoints[endpoint].map { (endpoint.rawValue, $0) }
        }
    }
}
