import Configuration
import Cryptography
import CurlTransport
import HTTPMessage
import Heimdallr
import Proxy
import Reactor

/// One upstream: the connection, and whether HTTP is spoken on it. Sends a HEAD without a token, and nothing else.
struct UpstreamCheck: Sendable {
    let settings: UpstreamSettings
    let options: PoolOptions
    let own: OwnListeners
    let loop: EventLoop

    func diagnosis() async -> Diagnosis {
        var group = Diagnosis.Group(
            address: nil,
            findings: [.skipped("address", "a wildcard without `url`: its hosts are known when they are asked for")])
        if let url = settings.url {
            let scheme: HTTPMessage.Scheme = url.scheme == .https ? .https : .http
            let origin = Origin(
                scheme: url.scheme == .https ? .https : .http, host: url.authority.host.description,
                port: url.authority.port(for: scheme), serverName: settings.tls.serverName)
            let connection = ConnectionCheck(origin: origin, options: options, peer: .upstream, own: own)
            let (findings, isReachable) = await connection.run()
            group.address = "\(origin.scheme.rawValue)://\(origin.host):\(origin.port)"
            group.findings = findings
            if isReachable, !findings.contains(where: { $0.check == "address" && $0.outcome == .failed }) {
                group.findings += await answer(origin, url.path, connection)
            }
        }
        return Diagnosis(kind: .upstream, name: settings.host.description, groups: [group])
    }

    private func answer(_ origin: Origin, _ path: String, _ connection: ConnectionCheck) async -> [Finding] {
        var request = BufferedClient.Request(origin: origin)
        request.method = "HEAD"
        request.target = path.isEmpty ? "/" : path
        request.fields = [("User-Agent", "heimdallr-proxy doctor")]
        request.timeout = min(settings.responseTimeout ?? ConnectionCheck.limit, ConnectionCheck.limit)
        let before = WallClock.now()
        let begin = ContinuousClock.now
        do throws(BufferedClient.Failure) {
            let answer = try await BufferedClient(options: options, loop: loop).send(request)
            let taken = begin.duration(to: .now)
            if answer.status == 400, await connection.wantsTLS() { return [ConnectionCheck.wantsTLS] }
            func value(_ name: String) -> String? { answer.fields.first { $0.name.lowercased() == name }?.value }
            let text = "answers \(answer.status) to HEAD \(request.target), without a token"
            return [
                answer.status >= 500
                    ? .warning("HTTP", text, "look at the upstream, or at what stands in front of it")
                    : .good("HTTP", text, after: taken),
                ClockCheck.finding(date: value("date"), age: value("age"), now: (before + WallClock.now()) / 2),
            ]
        } catch {
            return [await connection.wantsTLS() ? ConnectionCheck.wantsTLS : Self.failure(error)]
        }
    }

    private static func failure(_ failure: BufferedClient.Failure) -> Finding {
        switch failure {
        case .timeout:
            .failed(
                "HTTP",
                "silent: it takes the request and gives no answer within \(ConnectionCheck.limit.components.seconds) s",
                "check that the port speaks HTTP, and that the server is not overloaded")
        case .transport(let error) where error.kind == .tlsHandshake || error.kind == .tlsCertificate:
            .failed("HTTP", FailureCause.text(error), "check `tls` of the upstream")
        case .transport(let error):
            .failed("HTTP", FailureCause.text(error), "check that the port speaks HTTP, and the upstream's log")
        case .bodyTooLarge, .invalidRequest:
            .warning("HTTP", "the answer to HEAD can't be read", "look at what the upstream answers")
        }
    }
}
