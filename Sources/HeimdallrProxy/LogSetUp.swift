import Configuration
import Logging

/// The process's log, as the configuration wants it.
struct LogSetUp {
    let writer: LogWriter
    let logger: Logger

    /// Every library's log goes the same way. Once a process.
    static func bootstrap(_ settings: LogSettings) -> LogSetUp {
        let writer = LogWriter(format: settings.format == .json ? .json : .text)
        let level = Logger.Level(settings.level)
        LoggingSystem.bootstrap(
            { _, provider in LineLogHandler(writer: writer, level: level, metadataProvider: provider) },
            metadataProvider: nil)
        return LogSetUp(writer: writer, logger: Logger(label: "heimdallr-proxy"))
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
