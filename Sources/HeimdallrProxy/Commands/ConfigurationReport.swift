import Configuration
import Logging
import Reactor

/// Problems and warnings of a configuration on standard error: in the form of compilers, or as log lines where the
/// configuration asks for a JSON log.
struct ConfigurationReport {
    private let isJSON: Bool

    static let plain = ConfigurationReport(isJSON: false)

    init(_ settings: LogSettings) { self.init(isJSON: settings.format == .json) }

    private init(isJSON: Bool) { self.isJSON = isJSON }

    func warn(_ problem: ConfigurationError.Problem) {
        if isJSON { write(problem, .warning) } else { Complaint.warning("\(problem)") }
    }

    func fail(_ problems: [ConfigurationError.Problem]) {
        guard isJSON else {
            for problem in problems { Complaint.error("\(problem)") }
            Complaint.write(
                .error, "\(problems.count.counted("problem")) in the configuration; nothing was started.")
            return
        }
        for problem in problems { write(problem, .error) }
    }

    private func write(_ problem: ConfigurationError.Problem, _ level: Logger.Level) {
        var fields: Logger.Metadata = ["file": "\(problem.file)"]
        if let line = problem.line { fields["line"] = .stringConvertible(line) }
        if let column = problem.column { fields["column"] = .stringConvertible(column) }
        let line = LogLine.bytes(.json, time: .now, level: level, message: problem.message, fields: fields)
        let priority = Journal.readsErrors ? Journal.priority(level) : ""
        OutputDescriptor.standardError.write(Array(priority.utf8) + line)
    }
}
