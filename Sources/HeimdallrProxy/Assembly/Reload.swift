import Administration
import Configuration
import Heimdallr
import Logging
import Proxy
import Reactor
import Synchronization

/// A configuration that was read, and checked as far as its faults can be found before its use.
typealias ReadConfiguration = (configuration: Configuration, warnings: [ConfigurationError.Problem])

/// Runs requests to read the configuration again, one after the other.
final class ReloadQueue: Sendable {
    private struct State {
        weak var running: RunningApp?
        var isClosed = false
        var last: Task<ReloadAnswer, Never>?
    }

    private let state = Mutex(State())

    func set(_ running: RunningApp) { state.withLock { $0.running = running } }

    func reload() async -> ReloadAnswer {
        let task = state.withLock { state -> Task<ReloadAnswer, Never>? in
            guard let running = state.running, !state.isClosed else { return nil }
            let task = Task { [last = state.last, manager = running.shared.app.manager] in
                _ = await last?.value
                manager.notifyReloading()
                let answer = await running.readAgain()
                manager.notifyReady(at: running.addresses, isGood: answer.isGood)
                return answer
            }
            state.last = task
            return task
        }
        return await task?.value ?? ReloadAnswer(isGood: false, text: "error: the proxy is starting or stopping\n")
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Refuses new reloads, and waits for the current one.
    func close() async {
        let last = state.withLock { state in
            state.isClosed = true
            return state.last
        }
        _ = await last?.value
    }
}

extension RunningApp {
    fileprivate func readAgain() async -> ReloadAnswer {
        do {
            let (configuration, warnings) = try await BlockingWork.run {
                [read = shared.app.read, audit = shared.audit] in
                // After the audit file was moved away, a new one is opened even if the configuration is refused.
                audit.reopen()
                return try read()
            }
            let faults = ReloadLimits.faults(from: self.configuration, to: configuration)
            guard faults.isEmpty else { return refused(faults.map { .init(file: "configuration", message: $0) }) }
            let summary = try await take(configuration)
            shared.reloads.recordConfiguration(problems: [])
            shared.logger.info("the configuration was read again and is in use", metadata: summary.fields)
            for warning in warnings { log(warning, "of the configuration", .warning) }
            return ReloadAnswer(isGood: true, text: warnings.map { "warning: \($0)\n" }.joined() + summary.text)
        } catch let error as ConfigurationError {
            return refused(error.problems)
        } catch { return refused([.init(file: "configuration", message: "\(error)")]) }
    }

    private func refused(_ problems: [ConfigurationError.Problem]) -> ReloadAnswer {
        shared.reloads.recordConfiguration(problems: problems.map(\.description))
        for problem in problems { log(problem, "the configuration is invalid; the former one stays in use", .error) }
        return ReloadAnswer(
            isGood: false,
            text: problems.map { "error: \($0)\n" }.joined()
                + "\(problems.count.counted("problem")) in the configuration; the former one stays in use.\n")
    }

    private func log(_ problem: ConfigurationError.Problem, _ sentence: String, _ level: Logger.Level) {
        let fields = problem.fields.merging(["problem": "\(problem.message)"]) { $1 }
        shared.logger.log(level: level, "\(sentence)", metadata: fields)
    }

    /// Puts the configuration into use, or throws and changes nothing: the steps that can fail come first.
    private func take(_ next: Configuration) async throws -> ReloadSummary {
        let before = current.withLock { $0 }
        let former = Set(addresses)
        let assembled = try await shared.assemble(next, former: before)
        let clients = assembled.clients
        let formerEnded: Task<Void, Never>
        do {
            guard !shared.reloadQueue.isClosed else {
                throw ConfigurationError(problems: [.init(file: "configuration", message: "the proxy is stopping")])
            }
            formerEnded = try await server.change(
                to: next, clients: clients.byName, observer: assembled.observer, users: assembled.users,
                interception: assembled.authorities.interception, ready: assembled.authorities.save)
        } catch {
            await shared.discard(assembled)
            throw error
        }

        // From here on the new configuration is in use.
        await shared.use(assembled)
        await shared.interception.use(assembled.authorities.interception, next)
        let made = clients.without(before.clients)
        let gone = before.clients.without(clients)
        current.withLock { current in
            current.configuration = next
            current.clients = clients
            current.leaving += gone
            for client in gone { current.removedSettings[client.settings.name] = client.settings }
            for client in clients { current.removedSettings[client.settings.name] = nil }
        }
        administration?.change(
            to: AdministrationAssembly(shared: shared, configuration: next, clients: clients, server: server).sources)
        let paths = Set(clients.compactMap(\.settings.file?.path))
        for client in gone { await client.file?.stop(keepsFile: paths.contains(client.settings.file?.path ?? "")) }
        let formerPaths = Set(gone.compactMap(\.settings.file?.path))
        for client in made {
            shared.watch.add(client)
            client.file?.start(isSuccessor: formerPaths.contains(client.settings.file?.path ?? ""))
        }
        let formerByName = Dictionary(grouping: gone + before.leaving) { $0.settings.name }
        for client in made {
            let name = client.settings.name
            let former = formerByName[name] ?? []
            let earlier = before.removedSettings[name] ?? former.first?.settings
            client.beginning.start { await Self.begin(client, after: former, earlier) }
        }
        Task {
            for client in gone + made { await client.beginning.wait() }
            await self.release(gone, after: formerEnded)
        }
        let level = shared.app.log.level
        return ReloadSummary(
            kept: clients.count - made.count, made: made.count, gone: gone.count, upstreams: next.upstreams.count,
            opened: Set(addresses).subtracting(former).sorted(), closed: former.subtracting(addresses).sorted(),
            logLevel: level.current == next.log.level && before.configuration.log.level == next.log.level
                ? nil : level.sentence)
    }

    /// Time for the former client to save the tokens it has received.
    private static let handOver = Duration.seconds(10)

    /// Starts a client after the former clients of its name. `earlier` has the last settings under this name.
    private static func begin(
        _ client: RunningClient, after former: [RunningClient], _ earlier: ClientSettings?
    ) async {
        var unsaved: TokenRecord?
        for former in former { await former.beginning.wait() }
        // Skips retired clients, because they have handed over their record, and may still hold an older copy.
        for former in former where !former.store.isRetired {
            let hasSameRecord = former.heimdallr.recordName == client.heimdallr.recordName
            if hasSameRecord, !former.settings.losesTokens(to: client.settings) {
                client.heimdallr.takeOverCallers(of: former.heimdallr)
            }
            // A token request may take the timeout twice, because the proxy repeats the request if the answer is lost.
            let record = await former.heimdallr.handOver(within: former.settings.timeout * 2 + handOver)
            // A record belongs to a server and an account. A client of another server or account keeps its own record.
            guard hasSameRecord else { continue }
            former.store.retire()
            if let record, record.revision > unsaved?.revision ?? 0 { unsaved = record }
        }
        // An access token belongs to the settings with which it was requested.
        if let earlier, earlier.losesTokens(to: client.settings) {
            unsaved?.accessToken = nil
            client.heimdallr.ignoreStoredToken()
        }
        client.store.open()
        client.heimdallr.start(inheriting: unsaved)
    }

    /// Releases removed clients once the requests that use their tokens have ended.
    private func release(_ gone: [RunningClient], after formerEnded: Task<Void, Never>) async {
        await formerEnded.value
        await withDiscardingTaskGroup { group in
            for client in gone { group.addTask { await self.release(client) } }
        }
    }

    private func release(_ client: RunningClient) async {
        await client.heimdallr.drain(within: Self.handOver)
        // Also saves the record of a server or account that is no longer configured: a later reload may need it.
        while client.heimdallr.hasUnsavedRecord, !client.store.isRetired, !shared.reloadQueue.isClosed {
            guard (try? await Task.sleep(for: .seconds(1))) != nil else { break }
        }
        client.heimdallr.shutdown()
        shared.watch.remove(client)
        current.withLock { $0.leaving.removeAll { $0.heimdallr === client.heimdallr } }
    }
}

extension [RunningClient] {
    /// The clients that are not among `others`.
    fileprivate func without(_ others: [RunningClient]) -> [RunningClient] {
        let others = Set(others.map { ObjectIdentifier($0.heimdallr) })
        return filter { !others.contains(ObjectIdentifier($0.heimdallr)) }
    }
}

private struct ReloadSummary {
    var kept: Int
    var made: Int
    var gone: Int
    var upstreams: Int
    /// Addresses of new listeners.
    var opened: [String]
    var closed: [String]
    /// Sentence about the level; `nil` if the configured level is unchanged and in use.
    var logLevel: String?

    var text: String {
        var text = "The configuration is in use: \(upstreams.counted("upstream")); clients: \(kept) kept, "
        text += "\(made) new, \(gone) removed.\n"
        for address in opened { text += "Listening on \(address).\n" }
        for address in closed { text += "No longer listening on \(address).\n" }
        if let logLevel { text += "The log's level is \(logLevel).\n" }
        return text
    }

    var fields: Logger.Metadata {
        var fields: Logger.Metadata = [
            "upstreams": .stringConvertible(upstreams), "clients_kept": .stringConvertible(kept),
            "clients_made": .stringConvertible(made), "clients_gone": .stringConvertible(gone),
        ]
        if !opened.isEmpty { fields["listening"] = "\(opened.joined(separator: " "))" }
        if let logLevel { fields["log_level"] = "\(logLevel)" }
        if !closed.isEmpty { fields["closed"] = "\(closed.joined(separator: " "))" }
        return fields
    }
}

/// Settings that can't change while the proxy runs.
enum ReloadLimits {
    static func faults(from former: Configuration, to next: Configuration) -> [String] {
        [
            ("proxy.threads", former.proxy.threads == next.proxy.threads), ("admin", former.admin == next.admin),
            ("store", former.store == next.store), ("log.format", former.log.format == next.log.format),
            ("playground", former.playground == next.playground),
        ].filter { !$0.1 }
            .map { "\($0.0) can't change while the proxy runs: undo the change, or restart the proxy" }
    }
}
