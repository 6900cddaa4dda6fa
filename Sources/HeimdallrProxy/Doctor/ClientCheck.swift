import Administration
import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Reactor
import Reports
import WireText

/// One OAuth client: its server's metadata and endpoints, a token, the clock.
struct ClientCheck: Sendable {
    let settings: ClientSettings
    let client: Heimdallr
    let notes: TokenRequestNotes
    let tap: Tap
    let options: PoolOptions
    let own: OwnListeners
    let asksForTokens: Bool
    let loop: EventLoop

    func diagnosis() async -> Diagnosis {
        let metadata = await metadata()
        async let token = tokenFindings()
        let places = placesOf(tap.document)
        var parts = await withTaskGroup(of: (Int, Diagnosis.Part).self) { group in
            for (index, place) in places.enumerated() { group.addTask { (index, await check(place)) } }
            let found = await group.reduce(into: [Int: Diagnosis.Part]()) { $0[$1.0] = $1.1 }
            return places.indices.compactMap { found[$0] }
        }
        let findings = (metadata: metadata, token: await token)
        for (index, place) in places.enumerated() where parts[index].findings.allSatisfy({ $0.outcome != .failed }) {
            if await wantsTLS(place) { parts[index].findings.append(PlaceCheck.wantsTLS) }
        }
        let said = parts.flatMap(\.findings).filter { $0.outcome == .failed }
        let rest = Self.unsaid(findings.metadata, findings.token, beside: said) + [clock()]
        parts.append(Diagnosis.Part(place: nil, findings: rest))
        client.shutdown()
        return Diagnosis(kind: .client, name: settings.name, parts: parts)
    }

    /// Each fault once: what follows from one that is told is not told again, and what a token has refuted not at all.
    private static func unsaid(_ metadata: [Finding], _ token: [Finding], beside said: [Finding]) -> [Finding] {
        let hasToken = token.contains { $0.check == "token" && $0.outcome == .good }
        var metadata = metadata
        if hasToken { metadata.removeAll { $0.kin == .refutedByToken } }
        if metadata.isEmpty, hasToken { metadata = [.good("metadata", "names this issuer")] }
        let isPlain = said.contains(PlaceCheck.wantsTLS)
        var told = said
        return (metadata + token).map { finding in
            let follows = finding.outcome == .failed && (finding.kin == .consequence || isPlain)
            if follows, !told.isEmpty { return .skipped(finding.check, "none, for what is said above") }
            if finding.outcome == .failed { told.append(finding) }
            return finding
        }
    }

    // MARK: Metadata

    private func metadata() async -> [Finding] {
        guard let issuer = settings.issuer else { return [] }
        do throws(DiscoveryFault) {
            try await client.findMetadata()
        } catch {
            var finding = Finding.failed(
                "metadata", "\(error)",
                Advice(client.status()).sentence(for: LoginError.discovery(error)) ?? "check `issuer`")
            if case .network = error { finding.kin = .consequence }
            return [finding]
        }
        guard let document = tap.document else {
            return [.skipped("metadata", "the server says nothing about itself at \(issuer)")]
        }
        return MetadataCheck(settings: settings, document: document).findings
    }

    // MARK: Where it goes

    private struct Place: Sendable {
        var names: [String]
        var origin: Origin?
        var url: String
    }

    private func placesOf(_ document: JSONValue?) -> [Place] {
        var found: [(name: String, url: String)] = []
        if let issuer = settings.issuer { found.append(("issuer", issuer)) }
        let own: [(String, String?)] = [
            ("token_endpoint", settings.githubApp.map(\.api) ?? settings.tokenEndpoint),
            ("authorization_endpoint", settings.authorizationEndpoint),
            ("device_authorization_endpoint", settings.deviceAuthorizationEndpoint),
            ("revocation_endpoint", settings.revocationEndpoint),
            ("pushed_authorization_request_endpoint", settings.pushedAuthorizationEndpoint),
        ]
        for (name, url) in own { if let url { found.append((name, url)) } }
        if let document {
            for (name, url) in MetadataCheck(settings: settings, document: document).endpoints
            where !found.contains(where: { $0.name == name }) {
                found.append((name, url))
            }
        }
        // One connection for all that are at one server.
        var places: [Place] = []
        for (name, url) in found {
            let origin = CurlHTTPClient.split(url)?.0
            if let index = places.firstIndex(where: { $0.origin == origin && origin != nil }) {
                places[index].names.append(name)
            } else {
                places.append(Place(names: [name], origin: origin, url: url))
            }
        }
        // A server that names hundreds is after something else.
        return Array(places.prefix(8))
    }

    private func check(_ place: Place) async -> Diagnosis.Part {
        let names = place.names.joined(separator: ", ")
        guard let origin = place.origin else {
            let url = ForeignText.printable(String(place.url.prefix { $0 != "?" }), most: 80)
            return Diagnosis.Part(
                place: "\(names) \(url)",
                findings: [.failed("address", "this is no http or https address", "write it as https://HOST/PATH")])
        }
        let title = ForeignText.printable("\(names) at \(origin.scheme.rawValue)://\(origin.host):\(origin.port)")
        return Diagnosis.Part(place: title, findings: await at(origin).run().findings)
    }

    private func at(_ origin: Origin) -> PlaceCheck {
        PlaceCheck(origin: origin, options: options, peer: .authorizationServer, own: own)
    }

    /// Whether nothing has shown that plain HTTP is spoken there, and TLS is. To plain text TLS servers answer 400, if at
    /// all.
    private func wantsTLS(_ place: Place) async -> Bool {
        guard let origin = place.origin, origin.scheme == .http,
            !tap.answers.contains(where: { $0.status != 400 && CurlHTTPClient.split($0.url)?.0 == origin })
        else { return false }
        return await at(origin).wantsTLS()
    }

    // MARK: The token

    private func tokenFindings() async -> [Finding] {
        if let reason = reasonNotToAsk {
            return [.skipped("token", reason)] + (await endpointFindings())
        }
        let begin = ContinuousClock.now
        do throws(HeimdallrError) {
            let token = try await client.refreshedToken(waiting: settings.timeout + .seconds(3))
            let left = ContinuousClock.now.duration(to: token.expiresAt).components.seconds
            var text = "got one: \(token.type), good for \(max(0, left)) s"
            if !token.scope.isEmpty {
                text += ", scope \(ForeignText.printable(token.scope.joined(separator: " ")))"
            }
            let missing = client.status().scopeNotGranted
            let finding = Finding.good("token", text, after: begin.duration(to: .now))
            guard !missing.isEmpty else { return [finding] }
            return [
                finding,
                .warning(
                    "scope", "not granted: \(missing.joined(separator: ", "))",
                    "allow it for this client at the server, or leave it out of `scope`"),
            ]
        } catch {
            return [await failure(error)]
        }
    }

    private func failure(_ error: HeimdallrError) async -> Finding {
        var text = "none: \(error)"
        if let cause = notes.current.cause { text += "; \(cause)" }
        if let answer = tap.answers.last(where: { $0.method == "POST" }) {
            text += " (status \(answer.status)"
            if isNoToken(error), let type = answer.type.flatMap(MediaTypeName.init) {
                let shown = ServerText.sanitize(type.text, hiding: await client.knownSecrets())
                if shown == type.text { text += ", Content-Type \(shown)" }
            }
            text += ")"
        }
        var finding = Finding.failed("token", text, Advice(client.status()).sentence(for: error))
        switch error {
        case .deadlineExceeded:
            finding.advice = "check that the server answers; `timeout` says how long it may take"
            finding.kin = .consequence
        case .tokenEndpointUnavailable(.network, _), .tokenEndpointUnavailable(.discovery, _):
            finding.kin = .consequence
        case .tokenEndpointUnavailable(.status, _):
            finding.advice = "look at the server's log; a running proxy asks again by itself"
        default: break
        }
        return finding
    }

    private func isNoToken(_ error: HeimdallrError) -> Bool {
        switch error {
        case .tokenEndpointUnavailable(.answer, _), .clientRefused(.answer, _), .clientRefused(.status, _): true
        default: false
        }
    }

    /// `nil`: a token request costs nothing but a token.
    private var reasonNotToAsk: String? {
        if !asksForTokens { return "not asked for, by --no-token" }
        switch client.loginMethod {
        case .browser, .implicit, .device:
            return "not asked for: somebody has to sign in (heimdallr-proxy login \(settings.name))"
        case .password: return "not asked for: somebody has to type in a password"
        case nil: break
        }
        if client.exchangesCallers { return "not asked for: each caller's own token is exchanged" }
        if settings.grantType == .refreshToken {
            return "not asked for: that would spend the refresh token, which may be good only once"
        }
        return nil
    }

    /// Where no token is asked for: whether there is where to ask. The token endpoint is asked for nothing, for its clock.
    private func endpointFindings() async -> [Finding] {
        let url: String?
        do throws(LoginError) {
            url = try await client.findEndpoints().last?.url
        } catch {
            // Metadata that can't be had has said so itself.
            switch error {
            case .noEndpoint, .discovery(.missing), .discovery(.unusable):
                return [
                    .failed("endpoint", "\(error)", Advice(client.status()).sentence(for: error) ?? "write it there")
                ]
            default: return []
            }
        }
        guard let url else { return [] }
        var request = HeimdallrHTTPRequest(method: "HEAD", url: url)
        request.timeout = PlaceCheck.limit
        let http = TappedHTTPClient(
            client: CurlHTTPClient(BufferedClient(options: options, loop: loop)), tap: tap)
        _ = try? await http.send(request)
        return []
    }

    // MARK: The clock

    private func clock() -> Finding {
        guard let answer = tap.answers.last(where: { $0.date != nil }) ?? tap.answers.last else {
            return .skipped("clock", "no answer to compare it with")
        }
        return ClockCheck.finding(date: answer.date, age: answer.age, now: answer.at)
    }
}
