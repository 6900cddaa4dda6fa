import Administration
import Configuration
import Cryptography
import CurlTransport
import HTTPMessage
import Proxy
import Reactor
import WireText

/// Checks one upstream: the connection, and a HEAD without a token over the connections that serve requests.
struct UpstreamCheck: Sendable {
    let settings: UpstreamSettings
    let options: PoolOptions
    let loop: EventLoop
    /// What the running proxy says of this upstream.
    var reported: [Finding] = []
    /// Sources of the fixed credential to try; `nil`: it is not tried.
    var keys: CredentialSources?

    func diagnosis() async -> Diagnosis {
        Diagnosis(kind: .upstream, name: settings.host.description, findings: await findings() + reported)
    }

    private func findings() async -> [Finding] {
        guard let url = settings.url else {
            return [.skipped("address", "a wildcard without `url` names no host that can be checked")]
        }
        let origin = Origin(url.scheme, url.authority, serverName: settings.tls.serverName)
        let connection = ConnectionCheck(origin: origin, options: options, advice: nil, loop: loop)
        var findings = await connection.findings()
        if !findings.hasFailed { findings += await answer(connection) }
        return findings.at("\(origin.scheme.rawValue)://\(origin.host):\(origin.port)")
    }

    private func answer(_ connection: ConnectionCheck) async -> [Finding] {
        let before = WallClock.now()
        let begin = ContinuousClock.now
        switch await head(settings) {
        case .answer(400, _, _) where await connection.wantsTLS(): return [ConnectionCheck.schemeFault]
        case .answer(let status, let date, let age):
            let text = "answers \(status) to HEAD \(settings.path), without a token"
            var findings: [Finding] = [
                status >= 500
                    ? .warning("HTTP", text, "check the upstream, and any proxy in front of it")
                    : .good("HTTP", text, after: begin.duration(to: .now)),
                .clock(date: date, age: age, now: (before + WallClock.now()) / 2),
            ]
            if let key = await keyFinding(without: status) { findings.append(key) }
            return findings
        case .refusedByHTTP2, .noCredential:
            return [.good("HTTP", "speaks HTTP/2, and accepts no HEAD", after: begin.duration(to: .now))]
        case .failed(let error):
            if await connection.wantsTLS() { return [ConnectionCheck.schemeFault] }
            if await speaksHTTP2Only(connection.origin) {
                return [connection.fault(.http2Only(isSecure: connection.origin.scheme == .https))]
            }
            guard let error else {
                let text = "no answer to the request within \(ConnectionCheck.limit.components.seconds) s"
                return [.failed("HTTP", text, "check why the upstream is slow, and its log")]
            }
            return [connection.fault(error)]
        }
    }

    private func head(
        _ settings: UpstreamSettings, with keys: CredentialSources? = nil
    ) async -> UpstreamProbe.Outcome {
        await UpstreamProbe.head(
            settings, options, agent: "\(Product.userAgent) doctor",
            within: min(settings.responseTimeout ?? ConnectionCheck.limit, ConnectionCheck.limit), on: loop,
            credentials: keys)
    }

    /// Tries the fixed credential, if that was asked for.
    /// - Parameter status: of the answer to the same request without it.
    private func keyFinding(without status: Int) async -> Finding? {
        guard let keys, settings.injects else { return nil }
        guard settings.client == nil else {
            return .skipped("key", "it goes beside a token, so it can't be tried alone")
        }
        guard settings.methods.isEmpty || !Set(settings.methods).isDisjoint(with: ["GET", "HEAD"]) else {
            return .skipped("key", "the rule allows neither GET nor HEAD")
        }
        let request = "HEAD \(settings.path) with the key under inject"
        switch await head(settings, with: keys) {
        case .answer(let answer, _, _) where [401, 403].contains(answer):
            return .failed(
                "key", "answers \(answer) to \(request)",
                RefusedCredential.advice(status: answer, client: nil, injection: settings.injectionText))
        case .answer(let answer, _, _) where answer < 400 && [401, 403].contains(status):
            return .good("key", "answers \(answer) to \(request)")
        case .answer(let answer, _, _):
            return .skipped("key", "the answer, \(answer), to \(request) does not show whether the key is right")
        case .noCredential:
            return .failed("key", "the key under inject can't be read", "see the finding about this secret")
        case .refusedByHTTP2, .failed: return .skipped("key", "no answer to \(request)")
        }
    }

    /// Whether the server, which did not answer over HTTP/1.1, answers over HTTP/2.
    private func speaksHTTP2Only(_ origin: Origin) async -> Bool {
        guard options.http2 == .never else { return false }
        var other = settings
        other.http2 = origin.scheme == .https ? .offered : .known
        if case .failed = await head(other) { return false }
        return true
    }
}

extension UpstreamSettings {
    fileprivate var path: String { url.map { $0.path.isEmpty ? "/" : $0.path } ?? "/" }
}

extension Finding {
    /// Compares this machine's clock with a server's clock. Tokens and signatures depend on the time.
    /// - Parameter now: this machine's time of the answer, in seconds since 1970-01-01T00:00:00Z.
    static func clock(date: String?, age: String?, now: Int64) -> Finding {
        guard let date else { return .skipped("clock", "the server's answer has no Date field") }
        guard let other = HTTPDate.seconds(Array(date.utf8)) else {
            return .skipped("clock", "the server's Date field is no date")
        }
        guard age == nil || age == "0" else { return .skipped("clock", "the answer came from a cache") }
        let distance = abs(now - other)
        guard distance > 30 else { return .good("clock", "agrees with the server's within \(distance) s") }
        let text =
            "this machine's clock is \(Duration.seconds(distance).rough) \(now > other ? "ahead of" : "behind") the server's "
            + "(\(RFC3339.text(Int(clamping: other))))"
        let advice = "set this machine's clock by NTP (timedatectl shows it), if the server's clock is right"
        return distance > 300 ? .failed("clock", text, advice) : .warning("clock", text, advice)
    }
}
