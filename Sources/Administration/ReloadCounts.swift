import Synchronization

/// Outcome of a reload, as the command prints it.
public struct ReloadAnswer: Sendable, Equatable {
    public var isGood: Bool
    /// Lines, each with its line end.
    public var text: String

    public init(isGood: Bool, text: String) {
        self.isGood = isGood
        self.text = text
    }
}

/// Counts reloads of the configuration, of its files and of its commands. Counts of files that the configuration no
/// longer names are kept, so that a counter never decreases. Any thread.
public final class ReloadCounts: Sendable {
    public enum Thing: Sendable, Hashable {
        /// A changed file, by its path.
        case file(String)
        /// A run of a command that prints a secret, by its program.
        case command(String)
        /// A reading of a secret that a server hands out, by the words of its source.
        case server(String)
        case configuration
    }

    struct Counts: Sendable, Equatable {
        var good: UInt64 = 0
        var bad: UInt64 = 0
        var isLastGood = true
    }

    /// A configuration that was rejected.
    public struct Refusal: Sendable, Equatable {
        /// Problems, each as a line.
        public var problems: [String]
        public var at = ContinuousClock.now
    }

    private let counts = Mutex<[Thing: Counts]>([:])
    private let lastRefusal = Mutex<Refusal?>(nil)

    public init() {}

    /// The rejected configuration, while the last configuration read is not in use.
    public var refusal: Refusal? { lastRefusal.withLock { $0 } }

    /// - Parameter problems: reasons for rejecting the configuration; empty if it was accepted.
    public func recordConfiguration(problems: [String]) {
        lastRefusal.withLock { $0 = problems.isEmpty ? nil : Refusal(problems: problems) }
        record(.configuration, isGood: problems.isEmpty)
    }

    /// Adds the thing with zero counts, so that the metrics show it before its first reload.
    public func expect(_ thing: Thing) { counts.withLock { $0[thing] = $0[thing] ?? Counts() } }

    public func record(_ thing: Thing, isGood: Bool) {
        counts.withLock { counts in
            var count = counts[thing] ?? Counts()
            if isGood { count.good += 1 } else { count.bad += 1 }
            count.isLastGood = isGood
            counts[thing] = count
        }
    }

    var snapshot: [Thing: Counts] { counts.withLock { $0 } }
}

extension MetricsPage {
    func writeReloads(_ output: inout PrometheusText) {
        let counts = reloads.snapshot
        /// - Parameters:
        ///   - words: values of `result` for a good and a bad outcome.
        ///   - name: value of `label`; `nil` for a thing of another family.
        func write(
            _ family: String, _ help: String, _ label: String, _ words: (good: String, bad: String),
            _ name: (ReloadCounts.Thing) -> String?
        ) {
            let things = counts.compactMap { thing, count in name(thing).map { ($0, count) } }.sorted { $0.0 < $1.0 }
            output.family(
                family, .counter, help,
                things.flatMap { name, count in
                    [
                        .init([label: name, "result": words.good], count.good),
                        .init([label: name, "result": words.bad], count.bad),
                    ]
                })
        }
        write(
            "heimdallr_file_reloads_total",
            "Changed files of secrets, keys and certificates, by result: taken or refused.", "file",
            ("taken", "refused")
        ) { if case .file(let path) = $0 { path } else { nil } }
        write(
            "heimdallr_secret_command_runs_total", "Runs of commands that print a secret, by result.", "command",
            ("ok", "failed")
        ) { if case .command(let program) = $0 { program } else { nil } }
        write(
            "heimdallr_secret_requests_total", "Readings of secrets that servers hand out, by result.", "from",
            ("ok", "failed")
        ) { if case .server(let name) = $0 { name } else { nil } }
        let configuration = counts[.configuration] ?? ReloadCounts.Counts()
        output.family(
            "heimdallr_configuration_reloads_total", .counter,
            "Reloads of the configuration, by result: taken or refused.",
            [.init(["result": "taken"], configuration.good), .init(["result": "refused"], configuration.bad)])
        output.family(
            "heimdallr_configuration_good", .gauge,
            "1 if the configuration that was read last is in use, 0 if it was refused.",
            configuration.isLastGood ? 1 : 0)
    }
}
