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
        var parts: [Diagnosis.Part] = []
        let metadata = await metadata()
        async let token = tokenFindings()
        let places = placesOf(tap.document)
        let checked = await withTaskGroup(of: (Int, Diagnosis.Part, Bool).self) { group in
            for (index, place) in places.enumerated() {
                group.addTask {
                    let (part, isReachable) = await check(place)
                    return (index, part, isReachable)
                }
            }
            return await group.reduce(into: [Int: (Diagnosis.Part, Bool)]()) { $0[$1.0] = ($1.1, $1.2) }
        }
        for index in places.indices { if let (part, _) = checked[index] { parts.append(part) } }
        var rest = metadata
        rest += await token
        rest.append(clock())
        parts.append(Diagnosis.Part(place: nil, findings: rest))
        client.shutdown()
        return Diagnosis(kind: .client, name: settings.name, parts: parts)
    }

    // MARK: Metadata

    private func metadata() async -> [Finding] {
        guard let issuer = settings.issuer else { return [] }
        do throws(DiscoveryFault) {
            try await client.findMetadata()
        } catch {
            return [
                .failed(
                    "metadata", "\(error)",
                    Advice(client.status()).sentence(for: LoginError.discovery(error)) ?? "check `issuer`")
            ]
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

    private func check(_ place: Place) async -> (Diagnosis.Part, Bool) {
        let names = place.names.joined(separator: ", ")
        guard let origin = place.origin else {
            let url = ForeignText.printable(String(place.url.prefix { $0 != "?" }), most: 80)
            return (
                Diagnosis.Part(
                    place: "\(names) \(url)",
                    findings: [.failed("address", "this is no http or https address", "write it as https://HOST/PATH")]),
                false
            )
        }
        let title = ForeignText.printable("\(names) at \(origin.scheme.rawValue)://\(origin.host):\(origin.port)")
        let (findings, isReachable) = await place_(origin).run()
        return (Diagnosis.Part(place: title, findings: findings), isReachable)
    }

    private func place_(_ origin: Origin) -> PlaceCheck {
        PlaceCheck(origin: origin, options: options, peer: .authorizationServer, own: own)
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
        var advice = Advice(client.status()).sentence(for: error)
        let last = tap.answers.last { $0.method == "POST" }
        if let last, isNoToken(error) {
            text += " (status \(last.status)"
            if let type = last.type.flatMap(MediaTypeName.init) {
                let shown = ServerText.sanitize(type.text, hiding: await client.knownSecrets())
                if shown == type.text { text += ", Content-Type \(shown)" }
            }
            text += ")"
        }
        if let url = notes.current.url, let origin = CurlHTTPClient.split(url)?.0, origin.scheme == .http,
            last == nil || last?.status == 400, await place_(origin).wantsTLS()
        {
            text += "; the port speaks TLS, and the address says http://"
            advice = "write https:// in the address"
        }
        if error.isDeadline { advice = "check that the server answers; `timeout` says how long it may take" }
        return .failed("token", text, advice)
    }

    private func isNoToken(_ error: HeimdallrError) -> Bool {
        if case .tokenEndpointUnavailable(.answer, _) = error {
            true
        } else if case .clientRefused(.answer, _) = error {
            true
        } else if case .clientRefused(.status, _) = error {
            true
        } else {
            false
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

    /// Where no token is asked for, the token endpoint is asked for nothing, for its clock, and to see whether it is there.
    private func endpointFindings() async -> [Finding] {
        guard let found = try? await client.findEndpoints(), let url = found.last?.url,
            let (origin, _) = CurlHTTPClient.split(url)
        else { return [] }
        var request = HeimdallrHTTPRequest(method: "HEAD", url: url)
        request.timeout = PlaceCheck.limit
        let http = TappedHTTPClient(
            client: CurlHTTPClient(BufferedClient(options: options, loop: loop)), tap: tap)
        guard let answer = try? await http.send(request) else {
            guard origin.scheme == .http, await place_(origin).wantsTLS() else { return [] }
            return [
                .failed(
                    "endpoint", "the port speaks TLS, and the address says http://", "write https:// in the address")
            ]
        }
        guard answer.status == 404 || answer.status == 410 else { return [] }
        return [
            .warning(
                "endpoint", "\(found.last?.name ?? "the endpoint") answers \(answer.status) to HEAD",
                "check the address, \(ForeignText.printable(String(url.prefix { $0 != "?" })))")
        ]
    }

    // MARK: The clock

    private func clock() -> Finding {
        guard let answer = tap.answers.last(where: { $0.date != nil }) ?? tap.answers.last else {
            return .skipped("clock", "no answer to compare it with")
        }
        return ClockCheck.finding(date: answer.date, age: answer.age, now: answer.at)
    }
}

extension HeimdallrError {
    fileprivate var isDeadline: Bool { if case .deadlineExceeded = self { true } else { false } }
}
