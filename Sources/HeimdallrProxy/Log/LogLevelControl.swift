import Configuration
import Logging

/// Handles `heimdallr-proxy log-level` in the running proxy.
struct LogLevelControl: Sendable {
    let level: LogLevel
    let logger: Logger

    /// Default duration. A debug level without an end would fill a disk.
    static let time = Duration.seconds(10 * 60)
    static let times: ClosedRange<Duration> = .seconds(1) ... .seconds(24 * 60 * 60)

    /// An invalid request, with advice.
    struct Fault: Error, Equatable { let sentence: String }

    /// - Parameter time: in the configuration's notation: `10m`.
    static func read(_ level: String, for time: String?) throws(Fault) -> LogLevel.Change {
        guard let level = LogSettings.Level(rawValue: level.lowercased()) else {
            let all = LogSettings.Level.allCases.map(\.rawValue)
            let word = level.lowercased()
            let meant =
                Suggestion.nearest(to: word, among: all) ?? all.first { word.count > 2 && $0.hasPrefix(word) }
            let hint = meant.map { "; did you mean \"\($0)\"?" } ?? "."
            throw Fault(sentence: "there is no level \"\(level)\"\(hint) The levels: \(all.joined(separator: ", "))")
        }
        guard let time else { return LogLevel.Change(level: level, time: Self.time) }
        do throws(DurationText.Fault) {
            return LogLevel.Change(level: level, time: try DurationText.read(time, times))
        } catch {
            throw Fault(sentence: "--for \(time): \(error.sentence)")
        }
    }

    /// - Parameter wanted: `nil` to show the level only.
    /// - Returns: the answer's text, and whether the request was valid.
    func answer(_ wanted: (level: String, time: String?)?) -> (isGood: Bool, text: String) {
        guard let wanted else { return (true, "\(level.sentence)\n") }
        let change: LogLevel.Change
        do throws(Fault) { change = try Self.read(wanted.level, for: wanted.time) } catch {
            return (false, "error: \(error.sentence)\n")
        }
        let before = level.current
        // The line is logged at the more verbose of the two levels, so that it appears in the log.
        if Logger.Level(change.level) > Logger.Level(before) { note(change) }
        take(change)
        if Logger.Level(change.level) <= Logger.Level(before) { note(change) }
        return (true, "The log's level is \(level.sentence).\n")
    }

    private func take(_ change: LogLevel.Change) {
        guard change.level != level.configured else { return level.reset() }
        level.set(change) { [logger] level in
            logger.notice("the log's level is the configuration's again", metadata: ["level": "\(level)"])
        }
    }

    private func note(_ change: LogLevel.Change) {
        var fields: Logger.Metadata = ["level": "\(change.level)"]
        if change.level != level.configured { fields["for"] = .stringConvertible(LogSeconds(roundingUp: change.time)) }
        logger.notice("the log's level was changed by log-level", metadata: fields)
    }
}
