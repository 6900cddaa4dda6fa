import ArgumentParser
import CurlTransport

/// The process: its settings first, then the command, then the exit code.
@main
enum Main {
    static func main() async {
        if CommandKeeper.isThisProcess { CommandKeeper.run() }
        ProcessHygiene.apply()
        // Before the first thread, for the environment has no lock.
        _ = LibcurlGlobal.removedVariables
        // Without arguments, `check` would run as `serve`.
        guard let arguments = ProcessArguments.all else {
            Complaint.error(
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
                    // On the main thread: other threads block signals, and what `exec` runs would inherit that.
                    try command.run()
                }
            }
        } catch { end(with: error, words) }
        ProcessHygiene.end(ExitStatus.success.rawValue)
    }

    private static func end(with error: any Error, _ words: [String]) -> Never {
        let code = ExitStatus(for: error)
        let message =
            code == .usage
            ? HeimdallrProxyCommand.unknownVerb(words.first == "help" ? words.dropFirst().first : words.first)
                ?? HeimdallrProxyCommand.fullMessage(for: error)
            : HeimdallrProxyCommand.fullMessage(for: error)
        if !message.isEmpty {
            let output = code == .success ? OutputDescriptor.standardOutput : .standardError
            output.write(message.hasSuffix("\n") ? message : message + "\n")
        }
        ProcessHygiene.end(code.rawValue)
    }
}

/// The exit codes of the process.
enum ExitStatus: Int32 {
    case success = 0
    case failure = 1
    case usage = 2
    /// A bad answer: `status` of a degraded proxy, `why` of a refused request.
    case unwell = 3
    /// EX_CONFIG of sysexits.h.
    case badConfiguration = 78
    /// `exec` found the program but can't run it, as in shells and env(1).
    case notExecutable = 126
    case noSuchProgram = 127

    /// The argument parser's own code for wrong usage, 64, becomes 2, as shells have it.
    init(for error: any Error) {
        let code = HeimdallrProxyCommand.exitCode(for: error)
        self = code == .validationFailure ? .usage : ExitStatus(rawValue: code.rawValue) ?? .failure
    }

    var error: ExitCode { ExitCode(rawValue) }

    /// Does the same as `error`, and prints the fault before.
    func error(_ fault: String) -> ExitCode {
        Complaint.error(fault)
        return error
    }
}
