#if DEBUG
    import Glibc

    /// Environment variables that a debug build reads for tests.
    public enum EnvironmentVariable {
        /// `nil` for an unset variable. getenv(3).
        public static func value(_ name: String) -> String? {
            guard let value = unsafe getenv(name) else { return nil }
            return unsafe String(cString: value)
        }
    }

    /// Messages of a debug build to a test.
    public enum DebugLine {
        /// Writes once to standard error, so that a line is complete or missing. write(2).
        public static func say(_ text: String) {
            let bytes = Array(text.utf8)
            _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
    }
#endif
