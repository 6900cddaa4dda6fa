// Every pointer here lives for the one call it is passed to.
import CLinux
import Glibc
import Reactor
import Synchronization
import WireText

/// Settings of the whole process, applied once, before anything else.
enum ProcessHygiene {
    static func apply() {
        openStandardDescriptors()
        raiseFileLimit()
        FreedMemory.keep()
        forbidDumps()
        // A write to a closed peer then fails with an error code, and does not end the process.
        _ = signal(SIGPIPE, SIG_IGN)
        // A process that starts with an ignored SIGCHLD can't wait for its children.
        _ = signal(SIGCHLD, SIG_DFL)
    }

    /// Opens the standard descriptors that the process was started without. Otherwise a socket would get the number of
    /// standard error, and the log would be written to it. A write to the new descriptors still fails, because they are
    /// only for reading.
    private static func openStandardDescriptors() {
        for number in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(number, F_GETFD) < 0 {
            // open(2) returns the lowest free number. A system without /dev/null has at least a root folder.
            if unsafe open("/dev/null", O_RDONLY) < 0 { _ = unsafe open("/", O_RDONLY) }
        }
    }

    /// Raises the soft limit of open descriptors. A request in flight takes two. The usual limit of 1024 is for
    /// programs that use select(2). getrlimit(2).
    static func raiseFileLimit() { setFileLimit { $0.rlim_max } }

    /// Restores the limit of the process's start before another program replaces this process or inherits its limits.
    static func restoreFileLimit() { setFileLimit { $0.rlim_cur } }

    private static func setFileLimit(_ choose: (rlimit) -> rlim_t) {
        guard var limit = initialFileLimit else { return }
        limit.rlim_cur = choose(limit)
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// The soft limit of the process's start in decimal digits, for a keeper. Empty if it is unknown.
    static var initialFileLimitText: String { initialFileLimit.map { "\($0.rlim_cur)" } ?? "" }

    /// Sets the soft limit that `initialFileLimitText` of the parent process gave.
    static func setFileLimit(_ text: String) {
        if let limit = rlim_t(text) { setFileLimit { min(limit, $0.rlim_max) } }
    }

    static let initialFileLimit: rlimit? = {
        var limit = rlimit()
        return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }()

    /// Ends the process without the exit handlers of libraries. These free memory that ending threads still use, for
    /// example OpenSSL's. exit(3), _exit(2).
    static func end(_ status: Int32) -> Never {
        _ = fflush(nil)
        _exit(status)
    }

    /// Ends the crash reports of the Swift runtime, which `SWIFT_BACKTRACE` controls. A report has the memory to which
    /// registers point, and the variable can name a program to run. SIGQUIT would make a report, too.
    static func forbidCrashReports() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGQUIT]
        where !SignalPipe.isIgnored(number) {
            _ = signal(number, SIG_DFL)
        }
    }

    /// Hides the tokens from core files and from debuggers of the same user.
    static func forbidDumps() { _ = heimdallr_forbid_dumps() }

    /// Makes orphans among this process's descendants its children.
    static func adoptOrphans() { _ = heimdallr_adopt_orphans() }
}

enum SystemPipe {
    /// - Returns: the read end and the write end. No child program inherits them.
    static func open(_ flags: Int32 = 0) throws(SystemCallError) -> (Int32, Int32) {
        var ends: (Int32, Int32) = (-1, -1)
        let made = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
            unsafe pipe2(bytes.bindMemory(to: Int32.self).baseAddress, O_CLOEXEC | flags)
        }
        guard made == 0 else { throw SystemCallError(number: errno) }
        return ends
    }
}

enum SystemSockets {
    /// - Returns: both ends of a connection, socketpair(2). No child program inherits them.
    static func pair() throws(SystemCallError) -> (Int32, Int32) {
        var ends: (Int32, Int32) = (-1, -1)
        let made = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
            unsafe socketpair(
                AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0,
                bytes.bindMemory(to: Int32.self).baseAddress)
        }
        guard made == 0 else { throw SystemCallError(number: errno) }
        return ends
    }
}

/// A pipe for the numbers of signals. A signal handler may do little more than write to a pipe.
/// sigaction(2), signal-safety(7), pipe(7).
enum SignalPipe {
    private static let writeEnd = Atomic<Int32>(-1)
    private static let ownReadEnd = Atomic<Int32>(-1)

    static var readEnd: Int32 { ownReadEnd.load(ordering: .relaxed) }

    static var realTime: ClosedRange<Int32> { __libc_current_sigrtmin()...__libc_current_sigrtmax() }

    static func open() {
        guard let ends = try? SystemPipe.open(O_NONBLOCK) else { return }
        ownReadEnd.store(ends.0, ordering: .relaxed)
        writeEnd.store(ends.1, ordering: .relaxed)
    }

    /// Bit that marks the number of a signal from the kernel, for example for a key of the terminal.
    private static let kernelMark: UInt8 = 0x80

    /// Whether the process ignores the signal, for example because nohup(1) or a shell started it. sigaction(2).
    static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        // SIG_IGN is the address 1.
        return unsafe sigaction(number, nil, &action) == 0
            && unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    /// Makes the signal's handler write to the pipe. A full pipe loses signals without harm. `si_code` of sigaction(2).
    static func catchSignal(_ number: Int32) {
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_sigaction = { number, information, _ in
            let before = errno
            let mark = unsafe information.map { unsafe $0.pointee.si_code > 0 } ?? false ? SignalPipe.kernelMark : 0
            var byte = UInt8(truncatingIfNeeded: number) | mark
            _ = unsafe Glibc.write(SignalPipe.writeEnd.load(ordering: .relaxed), &byte, 1)
            errno = before
        }
        action.sa_flags = Int32(bitPattern: UInt32(SA_RESTART | SA_SIGINFO))
        _ = unsafe sigaction(number, &action, nil)
    }

    /// Returns up to 64 signals that were not returned yet.
    static func take() -> [(number: Int32, isFromKernel: Bool)] {
        var chunk = [UInt8](repeating: 0, count: 64)
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(readEnd, $0.baseAddress, $0.count) }
        return chunk.prefix(max(0, count)).map { (Int32($0 & ~kernelMark), $0 & kernelMark != 0) }
    }
}

/// The process's environment. environ(7), setenv(3).
enum ProcessEnvironment {
    /// A copy of all variables. If a name occurs twice, the first value counts, as in getenv(3).
    static var all: [String: String] {
        var all: [String: String] = [:]
        guard var next = unsafe heimdallr_environment() else { return all }
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            // An entry without an equals sign is not a variable.
            if let sign = text.utf8.firstIndex(of: UInt8(ascii: "=")) {
                let name = String(text[..<sign])
                if all[name] == nil { all[name] = String(text[text.utf8.index(after: sign)...]) }
            }
            unsafe next += 1
        }
        return all
    }

    /// Returns the variables, byte for byte, with these changes, for posix_spawn(3). The caller frees the strings.
    static func entries(setting: [String: String], removing: Set<String>) -> [UnsafeMutablePointer<CChar>?] {
        var entries: [UnsafeMutablePointer<CChar>?] = unsafe setting.map { unsafe strdup("\($0.key)=\($0.value)") }
        var next = unsafe heimdallr_environment()
        while let entry = unsafe next?.pointee {
            let name = unsafe String(String(cString: entry).prefix { $0 != "=" })
            if setting[name] == nil, !removing.contains(name) { unsafe entries.append(strdup(entry)) }
            unsafe next = next.map { unsafe $0 + 1 }
        }
        return unsafe entries + [nil]
    }

    /// Called before the first thread starts: the C library's environment has no lock.
    static func set(_ name: String, to value: String) { _ = unsafe setenv(name, value, 1) }

    /// Called before the first thread starts.
    static func remove(_ name: String) { _ = unsafe unsetenv(name) }

    /// Returns the variable's value. Needs no lock, because no variable changes once there are threads.
    static func value(of name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
}

/// The user of this process. geteuid(2).
enum ProcessIdentity {
    static var user: UInt32 { geteuid() }
}

/// A file descriptor for writing. Its owner closes it.
struct OutputDescriptor: Sendable {
    let number: Int32

    static let standardOutput = OutputDescriptor(number: STDOUT_FILENO)
    static let standardError = OutputDescriptor(number: STDERR_FILENO)

    /// Device and inode of the open file, such as `8:1234`. fstat(2).
    var file: String? {
        var status = stat()
        return unsafe fstat(number, &status) == 0 ? "\(status.st_dev):\(status.st_ino)" : nil
    }

    /// Does the same as `put`.
    /// - Returns: `false` after a failure, for example if the reader has gone.
    @discardableResult
    func write(_ bytes: [UInt8]) -> Bool { put(bytes).failure == nil }

    /// Blocks until all bytes are written or a write fails. write(2), poll(2).
    /// - Returns: the number of bytes that were written before the first failure.
    func put(_ bytes: [UInt8]) -> (count: Int, failure: SystemCallError?) {
        var start = 0
        while start < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(number, buffer.baseAddress?.advanced(by: start), buffer.count - start)
            }
            if written >= 0 {
                start += written
            } else if errno == EAGAIN {
                // Another program may have made the same terminal non-blocking.
                var interest = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&interest, 1, 1000)
            } else if errno != EINTR {
                return (start, SystemCallError(number: errno))
            }
        }
        return (start, nil)
    }

    @discardableResult
    func write(_ text: String) -> Bool { write(Array(text.utf8)) }
}

struct SystemCallError: Error {
    let number: Int32

    /// Whether the socket's file is missing, or no process listens at the address.
    var isNotListening: Bool { number == ENOENT || number == ECONNREFUSED || number == ENOTDIR }
    var isNoSuchFile: Bool { number == ENOENT }
    var isDenied: Bool { number == EACCES }
    /// Whether the other end of a pipe or socket is closed.
    var meansNoReader: Bool { number == EPIPE || number == ECONNRESET }
    var sentence: String { unsafe String(cString: strerror(number)) }
    /// The sentence, with the remedy if this machine lacks something.
    var advice: String { shortage.map { "\(sentence): \($0.remedy)" } ?? sentence }

    private var shortage: MachineShortage? { number == EPERM ? nil : MachineShortage(errno: number) }
}

/// Replaces this process by another program. execvp(3).
enum ProgramExecution {
    /// Called with a single thread, because it changes the environment.
    /// - Parameters:
    ///   - arguments: the program, searched in `PATH`, then its arguments.
    ///   - executable: the file to run; `nil` runs the file that the first argument names.
    /// - Returns: the fault. After a success it does not return.
    static func replaceProcess(
        _ arguments: [String], executable: String? = nil, setting: [String: String], removing: Set<String>
    ) -> SystemCallError {
        for name in removing { _ = unsafe unsetenv(name) }
        for (name, value) in setting { ProcessEnvironment.set(name, to: value) }
        // Restores the state at the start of this process.
        _ = signal(SIGPIPE, SIG_DFL)
        ProcessHygiene.restoreFileLimit()
        var argv: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) }
        unsafe argv.append(nil)
        if let program = executable ?? arguments.first { _ = unsafe execvp(program, argv) }
        return SystemCallError(number: errno)
    }
}
