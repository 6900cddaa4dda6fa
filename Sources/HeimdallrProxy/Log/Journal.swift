import Logging

/// systemd's journal. If the journal reads standard error, each line begins with a priority: sd-daemon(3).
enum Journal {
    /// Whether the journal reads standard error: `JOURNAL_STREAM` names standard error's file (systemd.exec(5)).
    static let readsStandardError =
        ProcessEnvironment.value(of: "JOURNAL_STREAM").map { $0 == OutputDescriptor.standardError.file } ?? false

    /// Returns the priority if the journal reads standard error; otherwise an empty string.
    static func prefix(_ level: Logger.Level) -> String { readsStandardError ? priority(level) : "" }

    /// Returns the level of syslog(3) in angle brackets, such as `<3>` for an error.
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
