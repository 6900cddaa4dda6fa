import Logging
import Reactor

/// Sends what is logged to a `LogWriter`, a line each.
struct LineLogHandler: LogHandler {
    let writer: LogWriter
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(writer: LogWriter, level: Logger.Level, metadataProvider: Logger.MetadataProvider? = nil) {
        self.writer = writer
        self.logLevel = level
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
                writer.format, time: .now, level: event.level, message: event.message.description, fields: fields))
    }
}
