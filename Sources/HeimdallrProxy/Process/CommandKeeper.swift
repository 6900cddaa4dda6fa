import FileSystem
import Glibc

/// A process of this executable between the proxy and a command: one that prints a secret, or a hook's.
///
/// Linux makes the keeper the parent of each descendant of the command whose parent has ended. So the keeper can kill
/// all descendants, also daemons and children in other sessions. The keeper kills only its own children. Nobody else
/// reaps them, so the number of a child can't belong to another process when the keeper kills it.
enum CommandKeeper {
    /// First argument of the process of a secret command's keeper. No person would type it.
    static let name = "heimdallr-command-keeper"
    /// First argument of the process of a hook's keeper. The hook gets its input from the proxy by way of the keeper. When
    /// the hook ends, all its descendants end.
    static let hookName = "heimdallr-hook-keeper"
    /// Path of the running executable, even after a package has replaced its file. proc_pid_exe(5).
    static let executable = "/proc/self/exe"

    static var isThisProcess: Bool { isHook || ProcessArguments.all?.first == name }
    private static var isHook: Bool { ProcessArguments.all?.first == hookName }

    /// The keeper's only message to the proxy.
    enum Report: Equatable {
        case ended(ChildProgram.Ending)
        /// The command could not be started. The value is `errno`.
        case notStarted(Int32)

        /// The wait status, or the negative `errno`, in decimal digits.
        var bytes: [UInt8] {
            switch self {
            case .ended(let ending): Array("\(ending.status)".utf8)
            case .notStarted(let number): Array("-\(number)".utf8)
            }
        }

        init?(_ bytes: [UInt8]) {
            guard let number = Int32(String(decoding: bytes, as: UTF8.self)) else { return nil }
            self = number < 0 ? .notStarted(0 &- number) : .ended(.init(status: number))
        }
    }

    /// Interval between two checks of the command, in milliseconds.
    private static let pause: Int32 = 5
    /// Maximum time to kill all descendants. A process of another user can't be killed.
    private static let patience = Duration.seconds(5)
    /// Time for a hook to end by itself after SIGTERM.
    private static let grace = Duration.seconds(1)

    /// Runs the command that the arguments name after the limit of open files, and reports its end on standard input, a socket to the proxy. When the
    /// proxy closes the socket or ends, the keeper kills the command and all its descendants.
    static func run() -> Never {
        ProcessHygiene.forbidDumps()
        _ = signal(SIGPIPE, SIG_IGN)
        ProcessHygiene.adoptOrphans()
        let isHook = isHook
        let input = isHook ? ProcessLink.input() : []
        if isHook, input.isEmpty { exit(0) }
        let words = Array((ProcessArguments.all ?? []).dropFirst())
        // The proxy has raised its own limit, with which programs that use select(2) could fail.
        ProcessHygiene.setFileLimit(words.first ?? "")
        let program: ChildProgram
        do throws(SystemCallError) {
            program = try ChildProgram(
                Array(words.dropFirst()), environment: ProcessEnvironment.all, input: input, output: STDOUT_FILENO)
        } catch { report(.notStarted(error.number)) }
        // The proxy sees the end of the output only after all processes have closed it.
        close(STDOUT_FILENO)
        while true {
            if let ending = program.endingWithGroup() {
                if isHook { endDescendants() }
                report(.ended(ending))
            }
            guard ProcessLink.inputEnds(within: pause) else { continue }
            if isHook { terminate(program) }
            program.kill(SIGKILL)
            endDescendants()
            exit(0)
        }
    }

    /// Asks a hook to end. If it does in time, reports its end.
    private static func terminate(_ program: ChildProgram) {
        program.kill(SIGTERM)
        let deadline = ContinuousClock.now + grace
        while ContinuousClock.now < deadline {
            if let ending = program.endingWithGroup() {
                endDescendants()
                report(.ended(ending))
            }
            usleep(5000)
        }
    }

    private static func report(_ report: Report) -> Never {
        OutputDescriptor(number: STDIN_FILENO).write(report.bytes)
        exit(0)
    }

    private static func endDescendants() {
        let deadline = ContinuousClock.now + patience
        // The children of a killed process become children of this process.
        while Children.reap(), ContinuousClock.now < deadline {
            for child in children(of: getpid()) { _ = kill(child, SIGKILL) }
            usleep(1000)
        }
    }

    /// Returns the running and ended children, from /proc.
    private static func children(of process: Int32) -> [Int32] {
        FileSystem.names(in: "/proc").compactMap { Int32($0) }.filter { parent(of: $0) == process }
    }

    private static func parent(of process: Int32) -> Int32? {
        guard let bytes = try? FileSystem.read("/proc/\(process)/stat", limit: 4096) else { return nil }
        return parent(inStat: bytes)
    }

    /// Reads the parent from `1234 (any name) S 1 …`. The name may contain brackets and blanks. proc_pid_stat(5).
    static func parent(inStat bytes: [UInt8]) -> Int32? {
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = String(decoding: bytes[(end + 1)...], as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? Int32(fields[1]) : nil
    }
}
