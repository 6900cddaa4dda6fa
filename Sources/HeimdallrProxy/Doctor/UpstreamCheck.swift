import Configuration
import Cryptography
import CurlTransport
import HTTPMessage
import Heimdallr
import Proxy
import Reactor
import WireText

/// Checks one upstream: the connection, HTTP and the clock. The only request is HEAD without a token.
struct UpstreamCheck: Sendable {
    let settings: UpstreamSettings
    let options: PoolOptions
    let own: OwnListeners
    let loop: EventLoop

    func diagnosis() async -> Diagnosis {
        Diagnosis(kind: .upstream, name: settings.host.description, findings: await findings())
    }

    private func findings() async -> [Finding] {
        guard let url = settings.url else {
            return [.skipped("address", "a wildcard without `url` names no host that can be checked")]
        }
        let scheme: HTTPMessage.Scheme = url.scheme == .https ? .https : .http
        let origin = Origin(
            scheme: url.scheme == .https ? .https : .http, host: url.authority.host.description,
            port: url.authority.port(for: scheme), serverName: settings.tls.serverName)
        let connection = ConnectionCheck(origin: origin, options: options, peer: .upstream, own: own)
        var findings = await connection.findings()
        if !findings.hasFailed { findings += await answer(origin, url.path, connection) }
        return findings.at("\(origin.scheme.rawValue)://\(origin.host):\(origin.port)")
    }

    private func answer(_ origin: Origin, _ path: String, _ connection: ConnectionCheck) async -> [Finding] {
        var request = BufferedClient.Request(origin: origin)
        request.method = "HEAD"
        request.target = path.isEmpty ? "/" : path
        request.fields = [("User-Agent", "\(Product.userAgent) doctor")]
        request.timeout = min(settings.responseTimeout ?? ConnectionCheck.limit, ConnectionCheck.limit)
        let before = WallClock.now()
        let begin = ContinuousClock.now
        do throws(BufferedClient.Failure) {
            let answer = try await BufferedClient(options: options, loop: loop).send(request)
            let taken = begin.duration(to: .now)
            if answer.status == 400, await connection.wantsTLS() { return [ConnectionCheck.schemeFault] }
            func value(_ name: String) -> String? { answer.fields.first { $0.name.lowercased() == name }?.value }
            let text = "answers \(answer.status) to HEAD \(request.target), without a token"
            return [
                answer.status >= 500
                    ? .warning("HTTP", text, "check the upstream, and any proxy in front of it")
                    : .good("HTTP", text, after: taken),
                .clock(date: value("date"), age: value("age"), now: (before + WallClock.now()) / 2),
            ]
        } catch {
            if await connection.wantsTLS() { return [ConnectionCheck.schemeFault] }
            return [await speaksHTTP2(request) ? Self.http2Fault(origin) : Self.failure(error)]
        }
    }

    /// Whether the server, which did not answer over HTTP/1.1, answers over HTTP/2.
    private func speaksHTTP2(_ request: BufferedClient.Request) async -> Bool {
        guard options.http2 == .never else { return false }
        var options = options
        options.http2 = request.origin.scheme == .https ? .offered : .known
        return (try? await BufferedClient(options: options, loop: loop).send(request)) != nil
    }

    private static func http2Fault(_ origin: Origin) -> Finding {
        let advice = TLSFault.http2Advice(.upstream, isSecure: origin.scheme == .https)
        return .failed("HTTP", "the server speaks HTTP/2 only", String(advice.drop { $0 != ":" }.dropFirst(2)))
    }

    private static func failure(_ failure: BufferedClient.Failure) -> Finding {
        let text =
            switch failure {
            case .timeout: "no answer to the request within \(ConnectionCheck.limit.components.seconds) s"
            case .transport(let error): FailureCause.text(error)
            case .bodyTooLarge, .invalidRequest: "the answer to HEAD can't be read"
            }
        return .failed("HTTP", text, "check that the port speaks HTTP, and the upstream's log")
    }
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
