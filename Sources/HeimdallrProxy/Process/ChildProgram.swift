// Every pointer here lives for the one call it is passed to. The buffer of `ChildOutput` lives as long as its owner.
import CLinux
import FileSystem
import Glibc

/// A child process. posix_spawn(3), waitpid(2).
struct ChildProgram {
    enum Ending: Equatable {
        case exited(Int32)
        case signalled(Int32)

        /// Reads a wait status: waitpid(2).
        init(status: Int32) {
            let signal = status & 0x7F
            self = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
        }

        var status: Int32 {
            switch self {
            case .exited(let code): code << 8
            case .signalled(let signal): signal
            }
        }
    }

    let pid: Int32

    /// Starts a program in a new process group. Its standard error is /dev/null.
    /// - Parameters:
    ///   - arguments: the program, searched in `PATH`, then its arguments. No shell reads them.
    ///   - environment: the program's whole environment.
    ///   - input: the content of standard input, at most 4 KiB.
    ///   - output: the descriptor that becomes standard output; `nil` for /dev/null.
    init(
        _ arguments: [String], environment: [String: String], input: [UInt8] = [], output: Int32? = nil
    ) throws(SystemCallError) {
        let ends = try SystemPipe.open()
        defer { close(ends.0) }
        // The input fits into the pipe, so the write does not block (pipe(7)).
        OutputDescriptor(number: ends.1).write(Array(input.prefix(4096)))
        close(ends.1)
        try self.init(arguments, environment: environment, input: ends.0, output: output)
    }

    /// Starts a program in a new process group.
    /// - Parameters:
    ///   - executable: the file to run; `nil` runs the file that the first argument names.
    ///   - input: the descriptor that becomes standard input.
    init(
        _ arguments: [String], executable: String? = nil, environment: [String: String], input: Int32, output: Int32?
    ) throws(SystemCallError) {
        var envp: [UnsafeMutablePointer<CChar>?] = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") }
        unsafe envp.append(nil)
        pid = try unsafe Self.spawn(executable, arguments, envp, flags: POSIX_SPAWN_SETPGROUP) { actions, defaults, _ in
            unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
            if let output {
                unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
            } else {
                unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
            }
            unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
            unsafe posix_spawn_file_actions_addclosefrom_np(&actions, 3)
            unsafe sigfillset(&defaults)
        }
    }

    /// Starts a program in this process's group, so that the terminal treats both alike. The program inherits this
    /// process's environment, its standard descriptors and the state in `start`.
    /// - Parameters:
    ///   - arguments: the program, searched in `PATH`, then its arguments.
    ///   - executable: the file to run; `nil` runs the file that the first argument names.
    ///   - setting: variables to add or replace in the environment. `removing` names variables to remove.
    ///   - link: a descriptor that the program gets as `start.free`, beside those that it inherits.
    init(
        _ arguments: [String], executable: String? = nil, setting: [String: String], removing: Set<String>,
        as start: StartState, link: Int32? = nil
    ) throws(SystemCallError) {
        let envp = unsafe ProcessEnvironment.entries(setting: setting, removing: removing)
        ProcessHygiene.restoreFileLimit()
        defer { ProcessHygiene.raiseFileLimit() }
        let kept = start.descriptors + (link == nil ? [] : [start.free])
        pid = try unsafe Self.spawn(executable, arguments, envp, flags: 0) { actions, defaults, mask in
            if let link { unsafe posix_spawn_file_actions_adddup2(&actions, link, start.free) }
            let end = (kept.max() ?? STDERR_FILENO) + 1
            for number in (STDERR_FILENO + 1)..<end where !kept.contains(number) {
                unsafe posix_spawn_file_actions_addclose(&actions, number)
            }
            // Some libraries open descriptors that a child would inherit.
            unsafe posix_spawn_file_actions_addclosefrom_np(&actions, end)
            for number in [SIGPIPE, SIGXFSZ] { unsafe sigaddset(&defaults, number) }
            mask = start.mask
        }
    }

    /// - Parameters:
    ///   - environment: a list that ends with `nil`. This function frees its strings.
    ///   - prepare: adds file actions, signals to reset to their default effect, and blocked signals.
    private static func spawn(
        _ executable: String?, _ arguments: [String], _ environment: [UnsafeMutablePointer<CChar>?], flags: Int32,
        _ prepare: (inout posix_spawn_file_actions_t, inout sigset_t, inout sigset_t) -> Void
    ) throws(SystemCallError) -> Int32 {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        var (defaults, mask) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&defaults)
        unsafe sigemptyset(&mask)
        unsafe prepare(&actions, &defaults, &mask)
        // With POSIX_SPAWN_SETPGROUP in the flags, the default group number 0 makes a new process group.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
        unsafe posix_spawnattr_setsigmask(&attributes, &mask)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | flags))

        var argv: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) }
        unsafe argv.append(nil)
        defer { unsafe (argv + environment).forEach { unsafe free($0) } }
        guard let program = executable ?? arguments.first else { throw SystemCallError(number: ENOENT) }
        return try Children.start { () throws(SystemCallError) in
            var pid: Int32 = 0
            let failure = unsafe posix_spawnp(&pid, program, &actions, &attributes, argv, environment)
            guard failure == 0 else { throw SystemCallError(number: failure) }
            return pid
        }
    }

    /// Returns how the program ended; `nil` while it runs. Only the first call after the end returns the ending.
    func ending() -> Ending? { Children.takeEnding(of: pid) }

    /// Does the same as `ending`, but after the end it kills the rest of the group before it reaps the program. Until
    /// the program is reaped, no other group can get its number.
    func endingWithGroup() -> Ending? {
        var information = unsafe siginfo_t()
        guard unsafe waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0,
            unsafe information.si_signo != 0
        else { return nil }
        kill(SIGKILL)
        return ending()
    }

    /// Signals the program and its descendants in the process group.
    func kill(_ signal: Int32) { _ = Glibc.kill(-pid, signal) }

    /// Signals the program alone, unless it has ended.
    func pass(_ signal: Int32) { Children.signal(pid, signal) }
}

/// State of this process at its start that a child program inherits. sigprocmask(2), proc_pid_fd(5).
struct StartState: Sendable {
    let mask: sigset_t
    /// Open descriptors after the standard descriptors, in order, below 1024 and below the soft limit. posix_spawn(3)
    /// refuses to close a number above that limit.
    let descriptors: [Int32]

    /// The lowest number above the standard descriptors that is none of `descriptors`.
    var free: Int32 {
        let inherited = Set(descriptors)
        return ((STDERR_FILENO + 1)...).first { !inherited.contains($0) } ?? 0
    }

    /// Called on the main thread, because other threads block signals, and before anything else opens files.
    init() {
        var mask = sigset_t()
        unsafe pthread_sigmask(SIG_SETMASK, nil, &mask)
        self.mask = mask
        let limit = Int32(clamping: min(1024, ProcessHygiene.initialFileLimit?.rlim_cur ?? 1024))
        // Descriptors with FD_CLOEXEC are not inherited.
        descriptors = FileSystem.names(in: "/proc/self/fd").compactMap { Int32($0) }
            .filter { $0 > STDERR_FILENO && $0 < limit && fcntl($0, F_GETFD) == 0 }.sorted()
    }
}

/// A connection between this process and a program that it starts. socketpair(2).
struct ProcessLink: ~Copyable {
    private let ownEnd: Int32
    /// The program's end; -1 after this process has closed it.
    private(set) var otherEnd: Int32

    init() throws(SystemCallError) {
        (ownEnd, otherEnd) = try SystemSockets.pair()
    }

    deinit {
        close(ownEnd)
        if otherEnd >= 0 { close(otherEnd) }
    }

    mutating func closeOtherEnd() {
        if otherEnd >= 0 { close(otherEnd) }
        otherEnd = -1
    }

    /// Ends the input of the program. shutdown(2).
    borrowing func endSending() { _ = shutdown(ownEnd, Int32(SHUT_WR)) }

    /// Sends the program at most 4 KiB, without a wait.
    borrowing func send(_ bytes: [UInt8]) { OutputDescriptor(number: ownEnd).write(Array(bytes.prefix(4096))) }

    /// Returns the bytes that the program has sent; `nil` if there are none yet; empty if its end is closed.
    borrowing func received() -> [UInt8]? { Self.received(by: ownEnd, Int32(MSG_DONTWAIT)) }

    /// Waits for the bytes of `send` on standard input. Returns none if the other end is closed.
    static func input() -> [UInt8] { received(by: STDIN_FILENO, 0) ?? [] }

    /// recv(2).
    private static func received(by descriptor: Int32, _ flags: Int32) -> [UInt8]? {
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, flags) }
        if count < 0 { return errno == EAGAIN || errno == EINTR ? nil : [] }
        return Array(chunk[..<count])
    }

    /// Waits until the other end of standard input is closed, or until the time is over. Returns whether it is closed.
    /// poll(2).
    static func inputEnds(within milliseconds: Int32) -> Bool {
        var interest = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&interest, 1, milliseconds) > 0
    }
}

/// The output of a program: a pipe, and a bounded buffer that `deinit` wipes.
@safe struct ChildOutput: ~Copyable {
    enum Progress: Comparable { case nothing, some, ended, tooMuch }

    private let readEnd: Int32
    /// The program's end of the pipe. The output ends when the last process has closed this end.
    private(set) var writeEnd: Int32
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private var count = 0

    /// - Parameter limit: maximum number of bytes. After more bytes, `read` returns `tooMuch`.
    init(limit: Int) throws(SystemCallError) {
        (readEnd, writeEnd) = try SystemPipe.open()
        unsafe buffer = .allocate(capacity: limit + 1)
    }

    deinit {
        close(readEnd)
        if writeEnd >= 0 { close(writeEnd) }
        if let start = unsafe buffer.baseAddress { unsafe explicit_bzero(start, buffer.count) }
        unsafe buffer.deallocate()
    }

    mutating func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }

    /// Waits for more output, and adds it to the buffer. poll(2).
    mutating func read(waiting milliseconds: Int32) -> Progress {
        var interest = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&interest, 1, milliseconds) > 0 else { return .nothing }
        let read = unsafe Glibc.read(readEnd, buffer.baseAddress.map { unsafe $0 + count }, buffer.count - count)
        guard read != 0 else { return .ended }
        count += max(0, read)
        return unsafe count < buffer.count ? .some : .tooMuch
    }

    /// Passes the output without its final line end to `body`.
    borrowing func withText<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        var end = count
        if end > 0, unsafe buffer[end - 1] == UInt8(ascii: "\n") {
            end -= 1
            if end > 0, unsafe buffer[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        }
        return body(unsafe UnsafeBufferPointer(rebasing: buffer[..<end]).span)
    }
}
