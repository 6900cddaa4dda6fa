import Glibc

/// A command and its keeper process. The command is killed with all its descendants when this value is destroyed, and
/// when this process ends.
struct KeptCommand: ~Copyable {
    private let keeper: ChildProgram
    private var link: ProcessLink

    /// - Parameters:
    ///   - output: the descriptor that becomes standard output; `nil` for /dev/null.
    ///   - hookInput: content of standard input of a hook's command, not empty; `nil` for a secret command.
    init(
        _ words: [String], environment: [String: String], output: Int32? = nil, hookInput: [UInt8]? = nil,
        keeper executable: String = CommandKeeper.executable
    ) throws(SystemCallError) {
        var link = try ProcessLink()
        keeper = try ChildProgram(
            [hookInput == nil ? CommandKeeper.name : CommandKeeper.hookName, ProcessHygiene.initialFileLimitText]
                + words, executable: executable, environment: environment, input: link.otherEnd, output: output)
        link.closeOtherEnd()
        if let hookInput { link.send(hookInput) }
        self.link = link
    }

    /// Makes the keeper kill everything, and waits a second at most for the keeper's end, which the kernel may delay.
    deinit {
        link.endSending()
        for _ in 0..<500 {
            guard keeper.ending() == nil else { return }
            usleep(2000)
        }
        Children.abandon(keeper.pid)
    }

    /// Makes the keeper end the command. A hook has a second for its end. `report` still returns the ending.
    borrowing func end() { link.endSending() }

    /// `nil` while the command runs.
    borrowing func report() -> CommandKeeper.Report? {
        guard let bytes = link.received() else { return nil }
        // No valid report means that the keeper was killed.
        return CommandKeeper.Report(bytes) ?? .ended(.signalled(SIGKILL))
    }
}
