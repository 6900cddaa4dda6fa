import ArgumentParser
import CurlTransport

/// Applies the settings of the process, runs the command, and exits with the command's code.
@main
enum Main {
    static func main() async {
        ProcessHygiene.forbidCrashReports()
        if CommandKeeper.isThisProcess { CommandKeeper.run() }
        if EnclosedStart.isThisProcess { EnclosedStart.run() }
        ProcessHygiene.apply()
        // This changes the environment, which has no lock, so it comes before the first thread.
        _ = LibcurlGlobal.removedVariables
        // Without this exit, an unreadable command line would run `serve` instead of any other command.
        guard let arguments = ProcessArguments.all else {
            ErrorOutput.error(
                "the command line can't be read, because /proc is not mounted here: mount -t proc proc /proc")
            ProcessHygiene.end(ExitStatus.failure.rawValue)
        }
        let words = Array(arguments.dropFirst())
        do {
            if let configuration = ServeCommand.plain(words) {
                try await ServeCommand.serve(configuration)
            } else {
                try HeimdallrProxyCommand.checkHelp(words)
                var command = try HeimdallrProxyCommand.parseAsRoot(words)
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else if let command = command as? ExecCommand, command.serve {
                    try await command.runServed(StartState())
                } else {
                    // On the main thread: `exec` passes on its thread's signal mask, and other threads block signals.
                    try command.run()
                }
            }
        } catch { end(with: error, words) }
        ProcessHygiene.end(CommandOutput.exitCode(.success))
    }

    private static func end(with error: any Error, _ words: [String]) -> Never {
        let code = ExitStatus(for: error)
        let verbs = words.first == "help" ? words.dropFirst() : words[...]
        let message =
            code == .usage
            ? HeimdallrProxyCommand.unknownVerb(verbs.first, verbs.dropFirst().first)
                ?? HeimdallrProxyCommand.fullMessage(for: error)
            : HeimdallrProxyCommand.fullMessage(for: error)
        if !message.isEmpty {
            let text = message.hasSuffix("\n") ? message : message + "\n"
            if code == .success {
                CommandOutput.write(text)
            } else {
                _ = LineDescriptor.standardError.take(Array(text.utf8))
            }
        }
        ProcessHygiene.end(CommandOutput.exitCode(code))
    }
}

/// The exit codes of the process.
enum ExitStatus: Int32 {
    case success = 0
    case failure = 1
    case usage = 2
    /// `status` shows a degraded proxy, or `why` a request that would be refused.
    case problemReported = 3
    /// EX_CONFIG of sysexits.h.
    case badConfiguration = 78
    /// `exec` found the program but can't run it, as in shells and env(1).
    case notExecutable = 126
    /// `exec --enclose` can't enclose the program, as in env(1) for a fault of its own.
    case notEnclosed = 125
    case noSuchProgram = 127

    /// Replaces the argument parser's code for wrong usage, 64, by 2, as in shells.
    init(for error: any Error) {
        let code = HeimdallrProxyCommand.exitCode(for: error)
        self = code == .validationFailure ? .usage : ExitStatus(rawValue: code.rawValue) ?? .failure
    }

    var error: ExitCode { ExitCode(rawValue) }

    /// Prints the fault, then returns the same as `error`.
    func error(_ fault: String) -> ExitCode {
        ErrorOutput.error(fault)
        return error
    }
}
