// The terminal's own calls, all in this file: each takes a pointer, which strict memory safety wants marked. Every pointer
// here lives for the one call it is passed to.
import CLinux
import Glibc
import Synchronization

/// The terminal that a person sits at.
enum Terminal {
    /// isatty(3).
    static var showsErrors: Bool { isatty(STDERR_FILENO) == 1 }
    static var givesInput: Bool { isatty(STDIN_FILENO) == 1 }

    /// One line of standard input without its end; `nil` at the end of input, or when Ctrl-C came.
    static func readLine(limit: Int = 16 * 1024) -> String? {
        var line: [UInt8] = []
        while line.count <= limit {
            var byte: UInt8 = 0
            let count = unsafe read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR, !Interruption.hasCome { continue }
            guard count == 1 else { return line.isEmpty || count < 0 ? nil : String(decoding: line, as: UTF8.self) }
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            if byte != UInt8(ascii: "\r") { line.append(byte) }
        }
        return nil
    }

    /// The same without showing what is typed. termios(3).
    static func readSecretLine() -> String? {
        var before = termios()
        guard unsafe tcgetattr(STDIN_FILENO, &before) == 0 else { return readLine() }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        silent.c_lflag |= tcflag_t(ECHONL)
        _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer { _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &before) }
        return readLine()
    }

    /// Sleeps; ends early when Ctrl-C comes. nanosleep(2).
    static func pause(seconds: Int) {
        var time = timespec(tv_sec: seconds, tv_nsec: 0)
        _ = unsafe nanosleep(&time, nil)
    }
}

/// Ctrl-C, for a command that has something to put away first.
enum Interruption {
    private static let flag = Atomic(false)

    static var hasCome: Bool { flag.load(ordering: .relaxed) }

    /// From here on SIGINT and SIGTERM end nothing by themselves; calls that wait are interrupted. sigaction(2).
    static func watch() {
        // Made before the handler needs it.
        _ = hasCome
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { _ in Interruption.flag.store(true, ordering: .relaxed) }
        action.sa_flags = 0
        for number in [SIGINT, SIGTERM] { _ = unsafe sigaction(number, &action, nil) }
    }
}

/// A program that runs beside this process, in a process group of its own. posix_spawn(3), waitpid(2).
struct ChildProgram {
    enum Ending: Equatable {
        case exited(Int32)
        case signalled(Int32)
    }

    let pid: Int32

    /// - Parameters:
    ///   - arguments: the program first, searched in `PATH`; never a shell.
    ///   - environment: all of it.
    ///   - input: what it reads from standard input, at most 4 KiB; its output goes nowhere.
    init(_ arguments: [String], environment: [String: String], input: [UInt8] = []) throws(SystemCallError) {
        var ends: (Int32, Int32) = (-1, -1)
        let made = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
            unsafe pipe2(bytes.bindMemory(to: Int32.self).baseAddress, O_CLOEXEC)
        }
        guard made == 0 else { throw SystemCallError(number: errno) }
        defer { close(ends.0) }
        // Fits into the pipe, so that nobody waits (pipe(7)).
        OutputDescriptor(number: ends.1).write(Array(input.prefix(4096)))
        close(ends.1)

        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, ends.0, STDIN_FILENO)
        unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        unsafe posix_spawn_file_actions_addclosefrom_np(&actions, 3)

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var everything = sigset_t()
        unsafe sigfillset(&everything)
        var nothing = sigset_t()
        unsafe sigemptyset(&nothing)
        unsafe posix_spawnattr_setsigdefault(&attributes, &everything)
        unsafe posix_spawnattr_setsigmask(&attributes, &nothing)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))

        var argv: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) }
        unsafe argv.append(nil)
        var envp: [UnsafeMutablePointer<CChar>?] = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") }
        unsafe envp.append(nil)
        defer { unsafe (argv + envp).forEach { unsafe free($0) } }
        var pid: Int32 = 0
        guard let program = unsafe argv[0] else { throw SystemCallError(number: ENOENT) }
        let failure = unsafe posix_spawnp(&pid, program, &actions, &attributes, argv, envp)
        guard failure == 0 else { throw SystemCallError(number: failure) }
        self.pid = pid
    }

    /// `nil` while it runs. Asks only once after the end: the process is gone then.
    func ending() -> Ending? {
        var status: Int32 = 0
        guard unsafe waitpid(pid, &status, WNOHANG) == pid else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    }

    /// It, and what it has started.
    func kill(_ signal: Int32) { _ = Glibc.kill(-pid, signal) }
}
