import Configuration
import CurlTransport
import Heimdallr
import Proxy
import Reactor

/// Checks everything that a proxy with this configuration depends on, with the objects that serve requests. The checks
/// run concurrently.
struct Doctor {
    let source: ConfigurationSource
    let configuration: Configuration
    /// The clients to check, by name, and the upstreams to check, by host. If empty, all are checked.
    let names: [String]
    let asksForTokens: Bool
    /// Whether fixed credentials are sent to their upstreams.
    var triesKeys = false

    /// Returns the diagnosis of the files, then of clients and upstreams in the order of the configuration.
    /// - Parameter progress: called with the number of finished checks and the number of all checks.
    /// - Throws: if the event loop can't start, or a client can't be made from its settings.
    func diagnoses(progress: @escaping (_ done: Int, _ all: Int) -> Void) async throws -> [Diagnosis] {
        let loop = try EventLoop.start(name: "doctor")
        defer { loop.stop() }
        let secrets = SecretCache(configuration)
        let (own, running) = await BlockingWork.run { [configuration] in
            (Self.listeners(configuration), ReportedStatus(configuration))
        }
        let clients = configuration.clients.filter { names.isEmpty || names.contains($0.name) }
        let files = FileCheck(
            configuration: configuration, secrets: secrets, clients: clients, upstreams: upstreams,
            isWhole: names.isEmpty, loop: loop)
        let readsFile = source.file != nil
        var checks: [@Sendable () async -> Diagnosis] = [
            { [names] in
                let findings = await files.findings() + (names.isEmpty ? running.findings(readsFile: readsFile) : [])
                return Diagnosis(kind: .configuration, name: "configuration", findings: findings)
            }
        ]
        for settings in clients {
            let check = try client(settings, running[settings.name], own, secrets, loop)
            checks.append { await check.diagnosis() }
        }
        for settings in upstreams {
            var options = PoolOptions(upstream: settings, trustAnchors: configuration.trustAnchorsFile)
            options.addressPolicy.own = own
            let check = UpstreamCheck(
                settings: settings, options: options, loop: loop,
                reported: running.refusals(of: settings.host.description),
                keys: triesKeys ? CredentialSources { secrets.secret($0) } : nil)
            checks.append { await check.diagnosis() }
        }
        progress(0, checks.count)
        return Diagnosis.joined(await Checks.all(checks, progress: { progress($0, checks.count) }) { await $0() })
    }

    private func client(
        _ settings: ClientSettings, _ running: ReportedStatus.Client?, _ own: OwnListeners, _ secrets: SecretCache,
        _ loop: EventLoop
    ) throws -> ClientCheck {
        let assembly = ClientAssembly(settings: settings, configuration: configuration, secrets: secrets)
        let (notes, tap) = (TokenRequestNotes(), Tap())
        @Sendable func make(_ settings: ClientSettings, _ notes: TokenRequestNotes, _ tap: Tap?) throws -> Heimdallr {
            try ClientAssembly(settings: settings, configuration: configuration, secrets: secrets).make(
                on: loop, store: OAuthAccessTokenMemoryStore(), last: notes, tap: tap, onTokenRequest: { _ in })
        }
        let client = try make(settings, notes, tap)
        var options = assembly.poolOptions
        options.addressPolicy.own = own
        return ClientCheck(
            settings: settings, client: client, notes: notes, tap: tap, options: options,
            asksForTokens: asksForTokens, loop: loop, running: running,
            enrolment: settings.auto.map {
                EnrolmentCheck(
                    auto: $0, client: client, http: assembly.httpClient(on: loop, last: notes),
                    redirectURI: configuration.redirectURI(of: settings), pkce: settings.pkce,
                    seen: running?.challenge)
            },
            trial: AssertionTrial(settings: settings) { try? make($0, TokenRequestNotes(), nil) })
    }

    /// The upstreams to check: of several with the same `host`, `url`, `proxy`, `tls` and `http2`, only the first, unless
    /// their keys are tried.
    private var upstreams: [UpstreamSettings] {
        let wanted = configuration.upstreams.filter { !$0.answersHere }.filter {
            names.isEmpty || names.contains($0.host.description)
        }
        return wanted.reduce(into: []) { found, next in
            let isKnown = found.contains {
                $0.host == next.host && $0.url == next.url && $0.proxy == next.proxy && $0.tls == next.tls
                    && $0.http2 == next.http2 && !(triesKeys && $0.injections != next.injections)
            }
            if !isKnown { found.append(next) }
        }
    }

    /// Returns the addresses on which a proxy with this configuration listens. Blocks during name look-ups.
    private static func listeners(_ configuration: Configuration) -> OwnListeners {
        let own = OwnListeners()
        let all = configuration.listeners.map(\.address) + [configuration.admin?.listen].compactMap(\.self)
        for case .tcp(let host, let port) in all where port != 0 {
            for address in (try? SocketAddress.resolve(host: host, port: port)) ?? [] { own.add(address) }
        }
        return own
    }
}

/// Runs checks concurrently, and limits the time of a check.
enum Checks {
    /// Returns the results in the order of `items`. At most 16 checks run concurrently.
    static func all<Item: Sendable, Result: Sendable>(
        _ items: [Item], progress: (Int) -> Void = { _ in }, _ check: @escaping @Sendable (Item) async -> Result
    ) async -> [Result] {
        await withTaskGroup(of: (Int, Result).self) { group in
            var results: [Int: Result] = [:]
            func note(_ ended: (index: Int, result: Result)) {
                results[ended.index] = ended.result
                progress(results.count)
            }
            for (index, item) in items.enumerated() {
                if index >= 16, let ended = await group.next() { note(ended) }
                group.addTask { (index, await check(item)) }
            }
            for await ended in group { note(ended) }
            return items.indices.compactMap { results[$0] }
        }
    }

    /// Returns the work's value, or `nil` after `limit`. The work then continues, and its value is dropped.
    static func value<Value: Sendable>(
        within limit: Duration, of work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let (values, first) = AsyncStream<Value>.makeStream()
        let timer = Task {
            try? await Task.sleep(for: limit)
            first.finish()
        }
        Task {
            first.yield(await work())
            timer.cancel()
        }
        return await values.first { _ in true }
    }
}
