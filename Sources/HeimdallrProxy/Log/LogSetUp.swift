import Configuration
import Logging

struct LogSetUp {
    let writer: LogWriter
    let logger: Logger
    let level: LogLevel

    private static let label = "heimdallr-proxy"

    /// Installs the log for the whole process, once. Libraries also log here, but from warnings on only: their lower
    /// levels show internals.
    static func bootstrap(_ settings: LogSettings) -> LogSetUp {
        let writer = LogWriter(format: format(settings.format), showsPriority: Journal.readsErrors)
        let level = LogLevel(settings.level)
        LoggingSystem.bootstrap(
            { label, provider in
                LineLogHandler(
                    writer: writer, level: level, atLeast: label == Self.label ? .trace : .warning,
                    metadataProvider: provider)
            },
            metadataProvider: nil)
        return LogSetUp(writer: writer, logger: Logger(label: label), level: level)
    }

    /// Colours only at a terminal, and not with NO_COLOR (https://no-color.org).
    private static func format(_ format: LogSettings.Format) -> LogLine.Format {
        switch format {
        case .json: return .json
        case .text:
            let wantsNone = ProcessEnvironment.value(of: "NO_COLOR").map { !$0.isEmpty } ?? false
            let isDumb = ProcessEnvironment.value(of: "TERM") == "dumb"
            return Terminal.showsErrors && !wantsNone && !isDumb ? .colored : .text
        }
    }
}

extension Logger.Level {
    init(_ level: LogSettings.Level) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            }
    }
}
