import Administration
import Configuration
import Heimdallr
import Logging
import Proxy
import Reactor
import Reports
import Synchronization

final class RunningApp: Sendable {
    /// The objects that a new configuration replaces.
    struct Current: Sendable {
        var configuration: Configuration
        var clients: [RunningClient]
        /// Former clients that requests in flight still use.
        var leaving: [RunningClient] = []
        /// Settings of removed clients by name. Their records may still be in the store.
        var removedSettings: [String: ClientSettings] = [:]
    }

    let shared: SharedObjects
    let server: ProxyServer
    let administration: Administration?
    let current: Mutex<Current>
    /// Serves enclosed programs; `nil` without an admin section, and for one program.
    private let enclosures = Mutex<EnclosureService?>(nil)

    init(shared: SharedObjects, server: ProxyServer, administration: Administration?, current: Current) {
        self.shared = shared
        self.server = server
        self.administration = administration
        self.current = Mutex(current)
    }

    /// Begins to serve enclosed programs. A socket that can't be opened is told in the log.
    func serveEnclosures() async {
        guard let administration else { return }
        do {
            let service = try await EnclosureService(beside: administration.socketPath, for: self)
            enclosures.withLock { $0 = service }
        } catch {
            shared.logger.warning(
                "exec --enclose can't use this proxy", metadata: ["reason": "\(error)"])
        }
    }

    var configuration: Configuration { current.withLock { $0.configuration } }
    /// All clients, including leaving ones.
    var clients: [RunningClient] { current.withLock { $0.clients + $0.leaving } }
    var addresses: [String] { server.addresses.map(\.description) }
    /// Port of the first listener; 0 for a Unix socket.
    var port: UInt16 { server.addresses.first?.port ?? 0 }
    /// Address of the administration's page, `HOST:PORT`.
    var page: String? { administration?.address }

    /// Maximum time to export the remaining spans at the end.
    private static let lastSpans = Duration.seconds(3)

    /// A refresh token that was not saved before the stop. The fields of its log line.
    typealias Loss = Logger.Metadata

    /// Reports not ready, serves for `delay`, lets requests finish for `drainTimeout`, and then stops everything.
    /// - Returns: the refresh tokens that are lost.
    @discardableResult
    func stop(drainTimeout: Duration = .seconds(1), delay: Duration = .zero) async -> [Loss] {
        let begin = ContinuousClock.now
        administration?.beginDraining()
        enclosures.withLock { $0 }?.end()
        await shared.reloadQueue.close()
        await server.drain(within: drainTimeout, after: delay)
        if shared.app.isForOneProgram { await tellRefusals() }
        shared.files.end()
        // No request waits for a token any more, but a rotated refresh token in an answer under way must not be lost.
        let end = max(begin + drainTimeout + delay, .now + .seconds(1))
        let clients = clients
        for client in clients { await client.file?.stop() }
        await withDiscardingTaskGroup { group in
            for client in clients {
                group.addTask {
                    await client.beginning.wait(until: end)
                    await client.heimdallr.drain(within: end - .now)
                }
            }
        }
        let losses = clients.compactMap(loss)
        let rest = drainTimeout + delay - (ContinuousClock.now - begin)
        await shared.traces.end(within: min(Self.lastSpans, max(.seconds(1), rest)))
        await administration?.stop()
        for client in clients { client.heimdallr.shutdown() }
        await shared.watch.end()
        await shared.interception.end()
        await BlockingWork.run { [audit = shared.audit] in audit.close() }
        for loop in shared.loops { loop.stop() }
        return losses
    }

    private func tellRefusals() async {
        let summary = ProgramSummary(
            traffic: await server.traffic(), requests: await server.recentRequests().requests,
            untrusting: shared.watch.untrusting.current)
        if let line = summary.line { ErrorOutput.write(.notice, "heimdallr-proxy: \(line)") }
    }

    private func loss(of client: RunningClient) -> Loss? {
        // A retired client has handed its record to a successor.
        guard !client.store.isRetired, let fault = client.heimdallr.faultAtStop else { return nil }
        let hint = shared.watch.signIns.hint(for: client.settings.name)
        var fields: Loss = [
            "client": "\(client.settings.name)", "reason": "\(fault.fault)",
            "what_to_do":
                "\(Advice.sentence(for: fault)); if the client has no token after the next start, \(hint.advice)",
        ]
        if let url = hint.url { fields["login_url"] = "\(url)" }
        return fields
    }
}

extension [RunningClient] {
    var byName: [String: Heimdallr] { reduce(into: [:]) { $0[$1.settings.name] = $1.heimdallr } }
}
