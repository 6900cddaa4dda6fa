import Configuration
import Logging
import Synchronization

/// The process's log level: the configured level, or a temporary level from the command `log-level`. Any thread.
///
/// All loggers of the process read this level, so a change applies to the next line.
final class LogLevel: Sendable {
    /// An invalid request for a level, with advice.
    struct Fault: Error { let sentence: String }

    /// A temporary level and its duration.
    struct Change: Sendable {
        var level: LogSettings.Level
        var time: Duration
    }

    /// Default duration of a temporary level. A debug level without an end would fill the disk.
    private static let defaultTime = Duration.seconds(10 * 60)
    private static let permittedTimes: ClosedRange<Duration> = .seconds(1) ... .seconds(24 * 60 * 60)

    private struct State {
        var configured: LogSettings.Level
        var temporary: (level: LogSettings.Level, end: ContinuousClock.Instant)?
        var timer: Task<Void, Never>?
    }

    private let state: Mutex<State>
    /// Index of the current level in `LogSettings.Level.allCases`.
    private let index: Atomic<Int>

    init(_ configured: LogSettings.Level) {
        state = Mutex(State(configured: configured))
        index = Atomic(Self.index(of: configured))
    }

    var current: LogSettings.Level { LogSettings.Level.allCases[index.load(ordering: .relaxed)] }

    private static func index(of level: LogSettings.Level) -> Int {
        LogSettings.Level.allCases.firstIndex(of: level) ?? 0
    }

    private func update<Value>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            defer { index.store(Self.index(of: state.temporary?.level ?? state.configured), ordering: .relaxed) }
            return body(&state)
        }
    }

    /// Sets the configured level. A temporary level stays until its time is over.
    func configure(_ level: LogSettings.Level) { update { $0.configured = level } }

    /// Sets a temporary level instead of any earlier one.
    /// - Parameter ended: called with the configured level when the time is over, unless another change came first.
    func set(_ change: Change, ended: @escaping @Sendable (LogSettings.Level) -> Void = { _ in }) {
        let end = ContinuousClock.now + change.time
        let timer = Task { [weak self] in
            guard (try? await Task.sleep(until: end, clock: .continuous)) != nil, let level = self?.fallBack(at: end)
            else { return }
            ended(level)
        }
        update { state in
            state.timer?.cancel()
            state.timer = timer
            state.temporary = (change.level, end)
        }
    }

    func reset() {
        update { state in
            state.timer?.cancel()
            state.timer = nil
            state.temporary = nil
        }
    }

    /// Ends the temporary level and returns the configured one; `nil` if another change came first.
    private func fallBack(at end: ContinuousClock.Instant) -> LogSettings.Level? {
        update { state in
            guard state.temporary?.end == end else { return nil }
            state.timer = nil
            state.temporary = nil
            return state.configured
        }
    }

    var configured: LogSettings.Level { state.withLock { $0.configured } }

    /// The level in words: `info, as the configuration says`, or `debug for another 9m 58s, then info`.
    var sentence: String {
        state.withLock { state in
            guard let (level, end) = state.temporary else { return "\(state.configured), as the configuration says" }
            return "\(level) for another \(DurationText.show(ContinuousClock.now.duration(to: end))), "
                + "then \(state.configured)"
        }
    }

    /// Reads a level and its duration from the arguments of a command.
    /// - Parameter time: duration of the level, as in the configuration: `10m`; `nil` chooses `defaultTime`.
    static func read(_ level: String, for time: String?) throws(Fault) -> Change {
        let word = level.lowercased()
        guard let known = LogSettings.Level(rawValue: word) else {
            let all = LogSettings.Level.allCases.map(\.rawValue)
            let meant = Suggestion.nearest(to: word, among: all) ?? all.first { word.count > 2 && $0.hasPrefix(word) }
            let hint = meant.map { "; did you mean \"\($0)\"?" } ?? "."
            throw Fault(sentence: "there is no level \"\(level)\"\(hint) The levels: \(all.joined(separator: ", "))")
        }
        guard let time else { return Change(level: known, time: Self.defaultTime) }
        do throws(DurationText.Fault) {
            return Change(level: known, time: try DurationText.read(time, permittedTimes))
        } catch { throw Fault(sentence: "--for \(time): \(error.sentence)") }
    }

    /// Handles `heimdallr-proxy log-level` in the running proxy.
    /// - Parameter wanted: `nil` shows the level without a change.
    func answer(_ wanted: (level: String, time: String?)?, _ logger: Logger) -> (isGood: Bool, text: String) {
        guard let wanted else { return (true, "\(sentence)\n") }
        let change: Change
        do throws(Fault) { change = try Self.read(wanted.level, for: wanted.time) } catch {
            return (false, "error: \(error.sentence)\n")
        }
        var fields: Logger.Metadata = ["level": "\(change.level)"]
        if change.level != configured { fields["for"] = .stringConvertible(LogSeconds(roundingUp: change.time)) }
        func note() { logger.notice("the log's level was changed by log-level", metadata: fields) }
        // The notice is logged while the more verbose of the two levels is set, so that the log shows it.
        let isQuieter = Logger.Level(change.level) > Logger.Level(current)
        if isQuieter { note() }
        if change.level == configured {
            reset()
        } else {
            set(change) { level in
                logger.notice("the log's level is the configured level again", metadata: ["level": "\(level)"])
            }
        }
        if !isQuieter { note() }
        return (true, "The log's level is \(sentence).\n")
    }
}
