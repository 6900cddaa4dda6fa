import Administration
import Configuration
import Heimdallr
import Logging
import Synchronization

/// The secrets of the configuration, one object for each source, however many want it. What nobody wants any more goes.
/// Any thread.
final class SecretShelf: Sendable {
    private struct Place {
        weak var secret: LiveSecret?
    }

    /// What commands see.
    private let environment: Mutex<[String: String]>
    private let counts: ReloadCounts
    private let logger: Logger?
    private let places = Mutex<[SecretSource: Place]>([:])

    /// - Parameters:
    ///   - configuration: what commands may not see of the environment.
    ///   - logger: told when a secret can't be had, and when it can again; `nil`: somebody else says so.
    init(_ configuration: Configuration, counts: ReloadCounts = ReloadCounts(), logger: Logger? = nil) {
        environment = Mutex(ChildEnvironment.of(ProcessEnvironment.all, configuration))
        self.counts = counts
        self.logger = logger
    }

    /// Another configuration takes other things from the environment. For commands that are wanted from now on.
    func change(to configuration: Configuration) {
        environment.withLock { $0 = ChildEnvironment.of(ProcessEnvironment.all, configuration) }
    }

    /// Keeps the last good value where a new one can't be had.
    func secret(_ source: SecretSource) -> LiveSecret {
        places.withLock { places in
            if let secret = places[source]?.secret { return secret }
            let secret = make(source)
            places = places.filter { $0.value.secret != nil }
            places[source] = Place(secret: secret)
            return secret
        }
    }

    /// For what lets people in: a file that can't be read any more fits nothing, for to take it away is a way to lock
    /// them out. A command's last good value stays.
    func door(_ source: SecretSource) -> any SecretProvider {
        switch source {
        case .literal(let text): Secret(text)
        case .file(let path): SecretFileProvider(path: path)
        case .environment, .command: secret(source)
        }
    }

    /// Those that are wanted now.
    var all: [(source: SecretSource, secret: LiveSecret)] {
        places.withLock { $0.compactMap { source, place in place.secret.map { (source, $0) } } }
    }

    /// Those of the secrets that are wanted now.
    var files: Set<String> {
        Set(all.compactMap { source, _ in if case .file(let path) = source { path } else { nil } })
    }

    /// These files may have changed.
    func readAgain(_ paths: Set<String>) {
        for case (.file(let path), let secret) in all where paths.contains(path) { Task { await secret.refresh() } }
    }

    /// Reads all that were not read yet, at once; returns when that is over, well or not.
    func prime() async {
        await withDiscardingTaskGroup { group in
            for (_, secret) in all where secret.current() == nil && secret.fault == nil {
                group.addTask { await secret.refresh() }
            }
        }
    }

    private func make(_ source: SecretSource) -> LiveSecret {
        switch source {
        case .literal(let text): return LiveSecret(Secret(text))
        case .file(let path):
            let file = SecretFileProvider(path: path)
            counts.expect(.file(path))
            return LiveSecret(.eachTime, read: { try await file.secret() }, told: teller(.file(path)))
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
                .every(refresh), read: { try await command.secret() }, told: teller(.command(words.first ?? "")))
        }
    }

    private func teller(_ thing: ReloadCounts.Thing) -> @Sendable (LiveSecret.Outcome) -> Void {
        let isFirst = Atomic(true)
        let isCommand = if case .command = thing { true } else { false }
        return { [counts, logger] outcome in
            let isStart = isFirst.exchange(false, ordering: .relaxed)
            switch outcome {
            case .unchanged:
                if isCommand { counts.record(thing, isGood: true) }
            case .taken(let isRecovery):
                if isCommand || !isStart { counts.record(thing, isGood: true) }
                guard !isStart else { return }
                logger?.info(
                    isRecovery ? "a secret can be had again" : "a secret has changed",
                    metadata: ["from": "\(thing.inWords)"])
            case .failed(let fault, let hasValue, let isNew):
                if isCommand || isNew { counts.record(thing, isGood: false) }
                guard isNew else { return }
                logger?.warning(
                    hasValue ? "a secret can't be had; the last one stays in use" : "a secret can't be had",
                    metadata: ["from": "\(thing.inWords)", "reason": "\(fault)"])
            }
        }
    }
}

extension ReloadCounts.Thing {
    /// For the log.
    var inWords: String {
        switch self {
        case .file(let path): "file \(path)"
        case .command(let program): "command \(program)"
        case .configuration: "configuration"
        }
    }
}
