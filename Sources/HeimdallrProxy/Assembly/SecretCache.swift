import Administration
import Configuration
import FileSystem
import Heimdallr
import Logging
import Synchronization

/// The secrets of the configuration: one shared object for each source, released with its last user. Any thread.
final class SecretCache: Sendable {
    private struct WeakSecret {
        weak var secret: LiveSecret?
    }

    /// Environment of commands.
    private let environment: Mutex<[String: String]>
    /// Secrets that may have several lines: libpq's connection string, and keys.
    private let storeSecrets: Mutex<[SecretSource]>
    private let counts: ReloadCounts
    private let logger: Logger?
    private let remote: RemoteSecretReader
    private let onChange: @Sendable (SecretSource) -> Void
    private struct Sources {
        var all: [SecretSource: WeakSecret] = [:]
        /// Number of sources at which those without a user are removed.
        var limit = 64
    }

    private let sources = Mutex(Sources())

    /// - Parameters:
    ///   - configuration: names the environment variables that commands may not see.
    ///   - client: returns a client of the configuration, for secrets that are asked with its token.
    ///   - logger: logs when a secret becomes unavailable or available again; `nil` if the caller reports that.
    ///   - onChange: called after a source has given another value, or the first one after a failure.
    init(
        _ configuration: Configuration, counts: ReloadCounts = ReloadCounts(),
        client: @escaping @Sendable (String) -> Heimdallr? = { _ in nil }, logger: Logger? = nil,
        onChange: @escaping @Sendable (SecretSource) -> Void = { _ in }
    ) {
        environment = Mutex(ChildEnvironment.of(ProcessEnvironment.all, configuration))
        storeSecrets = Mutex(configuration.store.secrets)
        remote = RemoteSecretReader(trustAnchorsFile: configuration.trustAnchorsFile, client: client)
        self.counts = counts
        self.logger = logger
        self.onChange = onChange
    }

    func change(to configuration: Configuration) {
        environment.withLock { $0 = ChildEnvironment.of(ProcessEnvironment.all, configuration) }
        storeSecrets.withLock { $0 = configuration.store.secrets }
    }

    /// Returns the secret of a source. The secret keeps its last good value when a new value is unavailable.
    func secret(_ source: SecretSource) -> LiveSecret {
        var nested: [(source: SecretSource, secret: LiveSecret)] = []
        if case .remote(let remote) = source { nested = remote.nested.map { ($0, secret($0)) } }
        return sources.withLock { sources in
            if let secret = sources.all[source]?.secret { return secret }
            let secret = make(source, nested)
            if sources.all.count >= sources.limit {
                sources.all = sources.all.filter { $0.value.secret != nil }
                sources.limit = max(64, 2 * sources.all.count)
            }
            sources.all[source] = WeakSecret(secret: secret)
            return secret
        }
    }

    /// Returns a secret that grants access to the proxy. An unreadable file matches no password, so removing the file
    /// locks users out. A command's last good value stays in use.
    func accessSecret(_ source: SecretSource) -> any SecretProvider {
        switch source {
        case .literal(let text): Secret(text)
        case .file(let path):
            SecretClosureProvider(judged(source) { try await SecretFileProvider(path: path).secret() })
        case .environment, .command, .remote: secret(source)
        }
    }

    /// Secrets that are in use now.
    var all: [(source: SecretSource, secret: LiveSecret)] {
        sources.withLock { $0.all.compactMap { source, weak in weak.secret.map { (source, $0) } } }
    }

    var files: Set<String> {
        Set(all.compactMap { source, _ in if case .file(let path) = source { path } else { nil } })
    }

    /// Reads the secrets of these files again.
    func readAgain(_ paths: Set<String>) {
        for case (.file(let path), let secret) in all where paths.contains(path) { Task { await secret.refresh() } }
    }

    /// Reads all secrets that were not read yet, concurrently. Returns when all have succeeded or failed. Those that are
    /// asked with a client's token are read at their first use: the clients may not be there yet.
    func prime() async {
        await withDiscardingTaskGroup { group in
            for (source, secret) in all
            where secret.current() == nil && secret.fault == nil && source.client == nil {
                group.addTask { await secret.refresh() }
            }
        }
    }

    /// - Parameter nested: secrets with which the source's server is asked.
    private func make(_ source: SecretSource, _ nested: [(source: SecretSource, secret: LiveSecret)]) -> LiveSecret {
        switch source {
        case .literal(let text): return LiveSecret(Secret(text))
        case .file(let path):
            let file = SecretFileProvider(path: path)
            counts.expect(.file(path))
            return LiveSecret(
                .eachTime, read: judged(source) { try await file.secret() }, onOutcome: recorder(source, .file(path)))
        case .environment(let name):
            return LiveSecret(
                .eachTime,
                read: {
                    guard let value = ProcessEnvironment.value(of: name), !value.isEmpty else {
                        throw SecretProviderError("the environment variable \(name) is not set")
                    }
                    return Secret(value)
                })
        case .command(let words, let refresh):
            let command = SecretCommand(words: words, environment: environment.withLock { $0 })
            counts.expect(.command(words.first ?? ""))
            return LiveSecret(
                .every(refresh), read: judged(source) { try await command.secret() },
                onOutcome: recorder(source, .command(words.first ?? "")))
        case .remote(let server):
            let read = remote.reading(server) { wanted in
                nested.first { $0.source == wanted }?.secret ?? LiveSecret(Secret(""))
            }
            counts.expect(.server(server.description))
            var schedule = LiveSecret.Schedule.eachTime
            if case .vault(let settings) = server { schedule = .every(settings.refresh) }
            return LiveSecret(
                schedule, read: judged(source, read), onOutcome: recorder(source, .server(server.description)))
        }
    }

    /// Returns the reading `read`, which logs a secret in a wrong form, once until the form changes. The reader of the
    /// configuration reports the first content of a file.
    private func judged(
        _ source: SecretSource, _ read: @escaping @Sendable () async throws -> Secret
    ) -> @Sendable () async throws -> Secret {
        let last = Mutex((form: SecretForm?.none, isSaid: source.path != nil))
        return { [weak self] in
            let secret = try await read()
            let hasLines = self?.storeSecrets.withLock { $0.contains(source) } ?? true
            let form = SecretForm(secret.revealedBytes, hasLines: hasLines)
            let isSaid = last.withLock { last in
                defer { last = (form, false) }
                return last.isSaid || last.form == form
            }
            if let form, !isSaid {
                self?.logger?.warning(
                    "a secret is most likely damaged",
                    metadata: ["from": "\(source)", "reason": "it \(form.fault)", "what_to_do": "\(form.remedy)"])
            }
            return secret
        }
    }

    private func recorder(
        _ source: SecretSource, _ thing: ReloadCounts.Thing
    ) -> @Sendable (LiveSecret.Outcome) -> Void {
        let isFirst = Atomic(true)
        let countsEach = if case .file = thing { false } else { true }
        return { [counts, logger, onChange] outcome in
            let isStart = isFirst.exchange(false, ordering: .relaxed)
            switch outcome {
            case .unchanged:
                if countsEach { counts.record(thing, isGood: true) }
            case .taken(let isRecovery):
                if countsEach || !isStart { counts.record(thing, isGood: true) }
                guard !isStart else { return }
                onChange(source)
                logger?.info(
                    isRecovery ? "a secret can be read again" : "a secret has changed",
                    metadata: ["from": "\(thing.inWords)"])
            case .failed(let fault, let hasValue, let isNew):
                if countsEach || isNew { counts.record(thing, isGood: false) }
                guard isNew else { return }
                logger?.warning(
                    hasValue ? "a secret can't be read; the last one stays in use" : "a secret can't be read",
                    metadata: ["from": "\(thing.inWords)", "reason": "\(fault)"])
            }
        }
    }
}

extension ReloadCounts.Thing {
    var inWords: String {
        switch self {
        case .file(let path): "file \(path)"
        case .command(let program): "command \(program)"
        case .server(let name): name
        case .configuration: "configuration"
        }
    }
}
