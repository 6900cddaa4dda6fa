import Configuration
import Logging
import Reactor

struct LogSetUp {
    let writer: LogWriter
    let logger: Logger
    let level: LogLevel

    private static let label = "heimdallr-proxy"

    /// Installs the log for the whole process. Called once. Libraries log warnings and errors only, because their lower
    /// levels show internals.
    /// - Parameter file: destination of the lines; `nil` for standard error.
    static func bootstrap(_ settings: LogSettings, to file: AppendedFile? = nil) -> LogSetUp {
        let writer =
            file.map { LogWriter(format: settings.format == .json ? .json : .text, output: $0) }
            ?? LogWriter(format: format(settings.format), showsPriority: Journal.readsStandardError)
        let level = LogLevel(settings.level)
        LoggingSystem.bootstrap { label in
            LineLogHandler(writer: writer, level: level, lowest: label == Self.label ? .trace : .warning)
        }
        return LogSetUp(writer: writer, logger: Logger(label: label), level: level)
    }

    /// Returns a format with colours only at a terminal, without NO_COLOR (https://no-color.org) and TERM=dumb.
    private static func format(_ format: LogSettings.Format) -> LogLine.Format {
        switch format {
        case .json: return .json
        case .text:
            let wantsNone = ProcessEnvironment.value(of: "NO_COLOR").map { !$0.isEmpty } ?? false
            let isDumb = ProcessEnvironment.value(of: "TERM") == "dumb"
            return Terminal.isStandardError && !wantsNone && !isDumb ? .colored : .text
        }
    }
}

extension Logger.Level {
    /// Levels in the configuration have the same names as levels in swift-log.
    init(_ level: LogSettings.Level) { self = Logger.Level(rawValue: level.rawValue) ?? .info }
}

/// Passes log messages to a `LogWriter`, one line each.
struct LineLogHandler: LogHandler {
    let writer: LogWriter
    let level: LogLevel
    /// Lowest level that this logger writes, even if the process's level is lower.
    var lowest = Logger.Level.trace
    var own: Logger.Level?
    var metadata: Logger.Metadata = [:]

    /// Level set for this logger; if there is none, the process's level, but at least `lowest`.
    var logLevel: Logger.Level {
        get { own ?? max(lowest, Logger.Level(level.current)) }
        set { own = newValue }
    }

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = metadata
        if let own = event.metadata { fields.merge(own) { $1 } }
        if let error = event.error { fields["error"] = "\(error)" }
        writer.write(
            LogLine.bytes(
                writer.format, time: .now, level: event.level, message: event.message.description, fields: fields),
            level: event.level)
    }
}
