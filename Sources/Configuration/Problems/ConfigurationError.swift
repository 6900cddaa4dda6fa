/// All faults of a configuration, in the order of the file.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A fault or warning. It never contains the value of a secret.
    public struct Problem: Sendable, Equatable, CustomStringConvertible {
        /// Path of the file as given; without a file, name of the environment variable, or `environment`.
        public var file: String
        /// Line, counted from 1; `nil` for a fault of the whole file or of a variable.
        public var line: Int?
        /// Column, counted from 1 in Unicode scalars.
        public var column: Int?
        /// The fault and its correction.
        public var message: String
        /// Whether a later start may succeed without a change of the configuration, because a missing file may come.
        public var mayPass = false

        public init(file: String, line: Int? = nil, column: Int? = nil, message: String) {
            self.file = file
            self.line = line
            self.column = column
            self.message = message
        }

        /// `config.yaml:12:5: …`, in the form of compiler messages.
        public var description: String {
            var location = file
            if let line { location += ":\(line)" }
            if let column { location += ":\(column)" }
            return "\(location): \(message)"
        }
    }

    public var problems: [Problem]
    /// Warnings, which may explain a problem.
    public var warnings: [Problem]

    public init(problems: [Problem], warnings: [Problem] = []) {
        self.problems = problems
        self.warnings = warnings
    }

    /// Problems, each on a separate line.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
