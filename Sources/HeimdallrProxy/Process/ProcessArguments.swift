import FileSystem

/// The command line of this process.
enum ProcessArguments {
    private static let limit = 16 << 20

    /// The program's name, then its arguments; `nil` if they can't be found. proc_pid_cmdline(5).
    ///
    /// Swift alone may miss them: it looks beside `environ`, which moves when a preloaded library calls setenv(3).
    static let all: [String]? = {
        guard let bytes = try? FileSystem.read("/proc/self/cmdline", limit: limit), !bytes.isEmpty else {
            return CommandLine.arguments.isEmpty ? nil : CommandLine.arguments
        }
        return parse(bytes)
    }()

    /// Splits the arguments, each of which ends with a NUL byte.
    static func parse(_ bytes: [UInt8]) -> [String] {
        var parts = bytes.split(separator: 0, omittingEmptySubsequences: false)
        if parts.last?.isEmpty == true { parts.removeLast() }
        return parts.map { String(decoding: $0, as: UTF8.self) }
    }
}
