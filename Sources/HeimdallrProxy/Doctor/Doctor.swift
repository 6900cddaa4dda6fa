import Administration
import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor
import Synchronization

/// Looks at everything that the proxy with this configuration depends on, all at once where it can, each step within a
/// time of its own.
struct Doctor {
    let configuration: Configuration
    /// Of clients and hosts of upstreams; empty: all.
    var names: [String] = []
    var asksForTokens = true

    /// So many clients and upstreams are looked at at the same time.
    private static let mostAtOnce = 16

    enum Fault: Error {
        /// Nobody has this name.
        case unknown(String, known: [String])
    }

    /// What there is to look at.
    private struct Subjects {
        var clients: [ClientSettings]
        /// Several rules may lead to one place, on the same way.
        var upstreams: [UpstreamSettings]
    }

    /// - Throws: `Fault`
    private func subjects() throws(Fault) -> Subjects {
        var upstreams: [UpstreamSettings] = []
        for upstream in configuration.upstreams where !upstreams.contains(where: { Self.isSame($0, upstream) }) {
            upstreams.append(upstream)
        }
        guard !names.isEmpty else { return Subjects(clients: configuration.clients, upstreams: upstreams) }
        let known = configuration.clients.map(\.name) + configuration.upstreams.map(\.host.description)
        for name in names where !known.contains(name) { throw .unknown(name, known: known) }
        return Subjects(
            clients: configuration.clients.filter { names.contains($0.name) },
            upstreams: upstreams.filter { names.contains($0.host.description) })
    }

    private static func isSame(_ one: UpstreamSettings, _ other: UpstreamSettings) -> Bool {
        one.host == other.host && one.url == other.url && one.proxy == other.proxy && one.tls == other.tls
    }

    /// Files first, then clients and upstreams in the order of the configuration.
    /// - Parameter progress: told how many of how many are done, from any thread.
    /// - Throws: `Fault`; also when there is no event loop, or a client can't work at all.
    func diagnoses(progress: @escaping @Sendable (_ done: Int, _ all: Int) -> Void) async throws -> [Diagnosis] {
        let subjects = try subjects()
        let loop = try EventLoop.start(name: "doctor")
        defer { loop.stop() }
        let secrets = SecretShelf(configuration)
        let own = await BlockingWork.run { [configuration] in Self.listeners(configuration) }
        var checks: [@Sendable () async -> Diagnosis] = []
        let files = FileCheck(
            configuration: configuration, secrets: secrets, clients: subjects.clients, upstreams: subjects.upstreams,
            isWhole: names.isEmpty)
        checks.append { await files.diagnosis() }
        for settings in subjects.clients {
            let notes = TokenRequestNotes()
            let tap = Tap()
            let assembly = ClientAssembly(settings, configuration, secrets)
            let client = try assembly.make(
                on: loop, store: OAuthAccessTokenMemoryStore(), last: notes, tap: tap, onTokenRequest: { _ in })
            let check = ClientCheck(
                settings: settings, client: client, notes: notes, tap: tap, options: assembly.poolOptions, own: own,
                asksForTokens: asksForTokens, loop: loop)
            checks.append { await check.diagnosis() }
        }
        for settings in subjects.upstreams {
            let check = UpstreamCheck(
                settings: settings,
                options: PoolOptions(upstream: settings, trustAnchors: configuration.trustAnchorsFile), own: own,
                loop: loop)
            checks.append { await check.diagnosis() }
        }
        return Diagnosis.joined(await Self.all(checks, progress))
    }

    private static func all(
        _ checks: [@Sendable () async -> Diagnosis], _ progress: @escaping @Sendable (Int, Int) -> Void
    ) async -> [Diagnosis] {
        var results: [Int: Diagnosis] = [:]
        progress(0, checks.count)
        await withTaskGroup(of: (Int, Diagnosis).self) { group in
            var next = 0
            while next < checks.count || results.count < checks.count {
                if next < checks.count, next - results.count < mostAtOnce {
                    let (index, check) = (next, checks[next])
                    group.addTask { (index, await check()) }
                    next += 1
                } else if let (index, diagnosis) = await group.next() {
                    results[index] = diagnosis
                    progress(results.count, checks.count)
                }
            }
        }
        return checks.indices.compactMap { results[$0] }
    }

    /// Where the proxy would listen. Blocks for names.
    private static func listeners(_ configuration: Configuration) -> OwnListeners {
        let own = OwnListeners()
        let all =
            configuration.proxy.listen + configuration.upstreams.compactMap(\.listen)
            + [configuration.admin?.listen].compactMap(\.self)
        for case .tcp(let host, let port) in all where port != 0 {
            guard let found = try? SocketAddress.resolve(host: host, port: port) else { continue }
            for address in found { own.add(address) }
        }
        return own
    }
}
