import Logging

/// systemd's journal. Where standard error leads to it, each line begins with its priority: sd-daemon(3).
enum Journal {
    /// Whether standard error is the stream of the journal that `JOURNAL_STREAM` names: systemd.exec(5).
    static let readsErrors =
        ProcessEnvironment.value(of: "JOURNAL_STREAM").map { $0 == OutputDescriptor.standardError.file } ?? false

    /// The priority where the journal reads standard error; empty elsewhere.
    static func mark(_ level: Logger.Level) -> String { readsErrors ? priority(level) : "" }

    /// `<3>` for an error: the levels of syslog(3).
    static func priority(_ level: Logger.Level) -> String {
        switch level {
        case .critical: "<2>"
        case .error: "<3>"
        case .warning: "<4>"
        case .notice: "<5>"
        case .info: "<6>"
        case .trace, .debug: "<7>"
        }
    }
}
