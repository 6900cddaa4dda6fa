import Configuration
import Logging

/// The process's log, as the configuration wants it.
struct LogSetUp {
    let writer: LogWriter
    let logger: Logger

    private static let label = "heimdallr-proxy"

    /// Every library's log goes the same way, but only from warnings on: what they tell of themselves below that shows
    /// our objects from the inside. Once a process.
    static func bootstrap(_ settings: LogSettings) -> LogSetUp {
        let writer = LogWriter(format: settings.format == .json ? .json : .text)
        let level = Logger.Level(settings.level)
        LoggingSystem.bootstrap(
            { label, provider in
                let level = label == Self.label ? level : max(level, .warning)
                return LineLogHandler(writer: writer, level: level, metadataProvider: provider)
            },
            metadataProvider: nil)
        return LogSetUp(writer: writer, logger: Logger(label: label))
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
