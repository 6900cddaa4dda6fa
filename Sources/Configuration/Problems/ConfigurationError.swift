/// All faults of a configuration, in the order of the file. The operator has to correct them.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// One fault or warning. Never holds a secret's value.
    public struct Problem: Sendable, Equatable, CustomStringConvertible {
        /// The file's path as given; for settings without a file, the environment variable.
        public var file: String
        /// From 1.
        public var line: Int?
        /// From 1, in Unicode scalars.
        public var column: Int?
        /// The fault, and what to write instead.
        public var message: String

        public init(file: String, line: Int? = nil, column: Int? = nil, message: String) {
            self.file = file
            self.line = line
            self.column = column
            self.message = message
        }

        /// `config.yaml:12:5: …`, in the form of compilers.
        public var description: String {
            var location = file
            if let line { location += ":\(line)" }
            if let column { location += ":\(column)" }
            return "\(location): \(message)"
        }
    }

    public var problems: [Problem]
    /// To think about besides: one of them may be the reason of a problem.
    public var warnings: [Problem]

    public init(problems: [Problem], warnings: [Problem] = []) {
        self.problems = problems
        self.warnings = warnings
    }

    /// One line per problem.
    public var description: String { problems.map(\.description).joined(separator: "\n") }
}
