import Configuration
import Cryptography
import CurlTransport
import HTTPMessage
import Heimdallr
import Proxy
import Reactor

/// One upstream: the way there, and whether HTTP is spoken at its end. It is asked for nothing but a HEAD, without a token.
struct UpstreamCheck: Sendable {
    let settings: UpstreamSettings
    let options: PoolOptions
    let own: OwnListeners
    let loop: EventLoop

    func diagnosis() async -> Diagnosis {
        let name = settings.host.description
        guard let url = settings.url else {
            return Diagnosis(
                kind: .upstream, name: name,
                parts: [
                    Diagnosis.Part(
                        place: nil,
                        findings: [
                            .skipped("address", "a wildcard without `url`: its hosts are known when they are asked for")
                        ])
                ])
        }
        let scheme: HTTPMessage.Scheme = url.scheme == .https ? .https : .http
        let origin = Origin(
            scheme: url.scheme == .https ? .https : .http, host: url.authority.host.description,
            port: url.authority.port(for: scheme), serverName: settings.tls.serverName)
        let place = PlaceCheck(origin: origin, options: options, peer: .upstream, own: own)
        let way = await place.run()
        var findings = way.findings
        if way.isReachable, findings.allSatisfy({ $0.check != "address" || $0.outcome != .failed }) {
            findings += await exchange(origin, url.path, place)
        }
        return Diagnosis(
            kind: .upstream, name: name,
            parts: [
                Diagnosis.Part(place: "\(origin.scheme.rawValue)://\(origin.host):\(origin.port)", findings: findings)
            ])
    }

    private func exchange(_ origin: Origin, _ path: String, _ place: PlaceCheck) async -> [Finding] {
        let client = BufferedClient(options: options, loop: loop)
        var request = BufferedClient.Request(origin: origin)
        request.method = "HEAD"
        request.target = path.isEmpty ? "/" : path
        request.fields = [("User-Agent", "heimdallr-proxy doctor")]
        request.timeout = min(settings.responseTimeout ?? PlaceCheck.limit, PlaceCheck.limit)
        let before = WallClock.now()
        let begin = ContinuousClock.now
        do throws(BufferedClient.Failure) {
            let answer = try await client.send(request)
            let taken = begin.duration(to: .now)
            if answer.status == 400, await place.wantsTLS() { return [PlaceCheck.wantsTLS] }
            func value(_ name: String) -> String? { answer.fields.first { $0.name.lowercased() == name }?.value }
            let text = "answers \(answer.status) to HEAD \(request.target), without a token"
            let http: Finding =
                answer.status >= 500
                ? .warning("HTTP", text, "look at the upstream, or at what stands in front of it")
                : .good("HTTP", text, after: taken)
            return [
                http,
                ClockCheck.finding(
                    date: value("date"), age: value("age"), now: (before + WallClock.now()) / 2),
            ]
        } catch {
            if await place.wantsTLS() { return [PlaceCheck.wantsTLS] }
            return [failure(error)]
        }
    }

    private func failure(_ failure: BufferedClient.Failure) -> Finding {
        switch failure {
        case .timeout:
            return .failed(
                "HTTP",
                "silent: it takes the request and gives no answer within \(PlaceCheck.limit.components.seconds) s",
                "check that the port speaks HTTP, and that the server is not overloaded")
        case .transport(let error) where error.kind == .tlsHandshake || error.kind == .tlsCertificate:
            return .failed("HTTP", FailureCause.text(error), "check `tls` of the upstream")
        case .transport(let error):
            return .failed("HTTP", FailureCause.text(error), "check that the port speaks HTTP, and the upstream's log")
        case .bodyTooLarge, .invalidRequest:
            return .warning("HTTP", "the answer to HEAD can't be read", "look at what the upstream answers")
        }
    }
}
