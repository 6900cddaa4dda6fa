#if DEBUG
    import Glibc

    /// What a debug build reads from the environment by itself, for tests.
    public enum EnvironmentVariable {
        /// `nil`: it is not set. getenv(3).
        public static func value(_ name: String) -> String? {
            guard let value = unsafe getenv(name) else { return nil }
            return unsafe String(cString: value)
        }
    }

    /// What a debug build tells a test.
    public enum DebugLine {
        /// One write to standard error: a line is whole or not there. write(2).
        public static func say(_ text: String) {
            let bytes = Array(text.utf8)
            _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
        }
    }
#endif
