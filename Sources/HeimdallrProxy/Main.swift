import ArgumentParser

/// The process: hygiene first, then the verb, then the exit code.
@main
enum Main {
    static func main() async {
        ProcessHygiene.apply()
        // Swift reads the arguments from /proc/self/cmdline. Without any, `check` would be taken for `serve`.
        guard !CommandLine.arguments.isEmpty else {
            OutputDescriptor.standardError.write(
                "error: the command line can't be read, for /proc is not mounted here: mount -t proc proc /proc\n")
            HeimdallrProxyCommand.exit(withError: ExitStatus.failure.error)
        }
        do {
            var command = try HeimdallrProxyCommand.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            exit(with: error)
        }
    }

    private static func exit(with error: any Error) -> Never {
        let code = ExitStatus(for: error)
        let message =
            code == .usage
            ? HeimdallrProxyCommand.unknownVerb(CommandLine.arguments.dropFirst().first)
                ?? HeimdallrProxyCommand.fullMessage(for: error)
            : HeimdallrProxyCommand.fullMessage(for: error)
        if !message.isEmpty {
            let output = code == .success ? OutputDescriptor.standardOutput : .standardError
            output.write(message.hasSuffix("\n") ? message : message + "\n")
        }
        HeimdallrProxyCommand.exit(withError: ExitCode(code.rawValue))
    }
}

/// What the process says to the one who started it.
enum ExitStatus: Int32 {
    case success = 0
    case failure = 1
    case usage = 2
    /// The question was answered, and the answer is bad: `status` of a degraded proxy, `why` of a refusal.
    case unwell = 3
    /// EX_CONFIG of sysexits.h.
    case badConfiguration = 78
    /// Of `exec`, as shells and env(1) have it: the program is there, but can't be run.
    case notExecutable = 126
    case noSuchProgram = 127

    /// The argument parser's own code for wrong usage, 64, becomes 2, as shells have it.
    init(for error: any Error) {
        let code = HeimdallrProxyCommand.exitCode(for: error)
        self = code == .validationFailure ? .usage : ExitStatus(rawValue: code.rawValue) ?? .failure
    }

    var error: ExitCode { ExitCode(rawValue) }
}
