import Synchronization

/// Outcome of reading the configuration again, as the command prints it.
public struct ReloadAnswer: Sendable, Equatable {
    public var isGood: Bool
    /// Whole lines.
    public var text: String

    public init(isGood: Bool, text: String) {
        self.isGood = isGood
        self.text = text
    }
}

/// Counts how often the configuration, and files and commands that it names, were read again. Any thread. Counts of files that it
/// names no longer stay, so that a counter never decreases.
public final class ReloadCounts: Sendable {
    public enum Thing: Sendable, Hashable {
        /// A file that changed, by its path.
        case file(String)
        /// A run of a command that prints a secret, by its program.
        case command(String)
        case configuration
    }

    struct Counts: Sendable, Equatable {
        var good: UInt64 = 0
        var bad: UInt64 = 0
        var isLastGood = true
    }

    /// A configuration that was rejected.
    public struct Refusal: Sendable, Equatable {
        /// A line each.
        public var problems: [String]
        public var at = ContinuousClock.now
    }

    private let counts = Mutex<[Thing: Counts]>([:])
    private let lastRefusal = Mutex<Refusal?>(nil)

    public init() {}

    /// Set while the last configuration read is not the one in use.
    public var refusal: Refusal? { lastRefusal.withLock { $0 } }

    /// - Parameter problems: reasons for rejecting the configuration; empty if it is in use.
    public func recordConfiguration(problems: [String]) {
        lastRefusal.withLock { $0 = problems.isEmpty ? nil : Refusal(problems: problems) }
        record(.configuration, isGood: problems.isEmpty)
    }

    /// Lists it, with zero counts.
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
        func things(_ name: (ReloadCounts.Thing) -> String?) -> [(name: String, counts: ReloadCounts.Counts)] {
            counts.compactMap { thing, count in name(thing).map { ($0, count) } }.sorted { $0.name < $1.name }
        }
        let files = things { if case .file(let path) = $0 { path } else { nil } }
        let commands = things { if case .command(let program) = $0 { program } else { nil } }
        output.family(
            "heimdallr_file_reloads_total", .counter,
            "Files of secrets, keys and certificates that changed, by whether the new content was good.",
            files.flatMap {
                [
                    .init(["file": $0.name, "result": "taken"], $0.counts.good),
                    .init(["file": $0.name, "result": "refused"], $0.counts.bad),
                ]
            })
        output.family(
            "heimdallr_secret_command_runs_total", .counter, "Runs of commands that print a secret, by how they ended.",
            commands.flatMap {
                [
                    .init(["command": $0.name, "result": "ok"], $0.counts.good),
                    .init(["command": $0.name, "result": "failed"], $0.counts.bad),
                ]
            })
        let configuration = counts[.configuration] ?? ReloadCounts.Counts()
        output.family(
            "heimdallr_configuration_reloads_total", .counter,
            "How often the configuration was read again, by whether it was good.",
            [.init(["result": "taken"], configuration.good), .init(["result": "refused"], configuration.bad)])
        output.family(
            "heimdallr_configuration_good", .gauge,
            "1 while the configuration that was read last is in use, 0 while it was refused.",
            configuration.isLastGood ? 1 : 0)
    }
}
