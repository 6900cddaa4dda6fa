import Logging
import Reactor

/// Passes log messages to a `LogWriter`, one line each.
struct LineLogHandler: LogHandler {
    let writer: LogWriter
    /// The process's level, unless this logger has its own.
    var logLevel: Logger.Level {
        get { own ?? max(lowest, Logger.Level(level.current)) }
        set { own = newValue }
    }
    private let level: LogLevel
    private let lowest: Logger.Level
    private var own: Logger.Level?
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    /// - Parameter lowest: messages below it are never written, whatever the process's level.
    init(
        writer: LogWriter, level: LogLevel, atLeast lowest: Logger.Level = .trace,
        metadataProvider: Logger.MetadataProvider? = nil
    ) {
        self.writer = writer
        self.level = level
        self.lowest = lowest
        self.metadataProvider = metadataProvider
    }

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = metadata
        if let provided = metadataProvider?.get() { fields.merge(provided) { $1 } }
        if let own = event.metadata { fields.merge(own) { $1 } }
        if let error = event.error { fields["error"] = "\(error)" }
        writer.write(
            LogLine.bytes(
                writer.format, time: .now, level: event.level, message: event.message.description, fields: fields),
            level: event.level)
    }
}
