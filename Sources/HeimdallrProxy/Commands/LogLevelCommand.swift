import ArgumentParser
import Configuration
import WireText

struct LogLevelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log-level",
        abstract: "Show the running proxy's log level, or change it for a while.",
        discussion: """
            Without a level it prints the current one. A given level applies for the given time. Then the configured \
            level applies again, without a restart. To end the time at once, give the configured level. A reload \
            changes only the configured level.

              heimdallr-proxy log-level debug --for 30m

            The access log (log.access) is written at every level.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(
        help: "trace, debug, info, notice, warning or error.",
        completion: .list(LogSettings.Level.allCases.map(\.rawValue)))
    var level: String?

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Duration of the level, from 1s to 24h; default: 10m.", valueName: "time"))
    var time: String?

    func validate() throws {
        guard let level else {
            guard time == nil else { throw ValidationError("--for needs a level: log-level debug --for 10m") }
            return
        }
        do throws(LogLevel.Fault) { _ = try LogLevel.read(level, for: time) } catch {
            throw ValidationError(error.sentence)
        }
    }

    func run() throws {
        guard let level else { return try options.perform("GET", "/log-level") }
        let time = time.map { "&for=\(PercentEncoding.uri.encode($0))" } ?? ""
        try options.perform("POST", "/log-level?level=\(PercentEncoding.uri.encode(level))\(time)")
    }
}
