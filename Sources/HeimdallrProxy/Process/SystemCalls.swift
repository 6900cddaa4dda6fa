// The few calls of the C library that this executable makes itself, all in this file: each takes a pointer, which
// strict memory safety wants marked. Every pointer here lives for the one call it is passed to.
import CLinux
import Glibc
import Reactor
import Synchronization

/// What the process does about itself, once, before anything else.
enum ProcessHygiene {
    static func apply() {
        raiseFileLimit()
        FreedMemory.keep()
        forbidDumps()
        // A peer that closes early is an error code of one write, not the end of the process.
        _ = signal(SIGPIPE, SIG_IGN)
    }

    /// Each request in flight takes two descriptors; the soft limit of 1024 is for programs that use select(2).
    /// getrlimit(2).
    private static func raiseFileLimit() {
        guard var limit = initialFileLimit else { return }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// For a program that takes this process's place.
    static func restoreFileLimit() {
        guard var limit = initialFileLimit else { return }
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static let initialFileLimit: rlimit? = {
        var limit = rlimit()
        return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }()

    /// Ends the process without the exit handlers of libraries: threads that are still ending use what these free, in
    /// OpenSSL above all. exit(3), _exit(2).
    static func end(_ status: Int32) -> Never {
        _ = fflush(nil)
        _exit(status)
    }

    /// No core file and no debugger of the same user may read the tokens. PR_SET_DUMPABLE of prctl(2).
    static func forbidDumps() { control(4, 0) }

    /// Orphans among this process's descendants become its children. PR_SET_CHILD_SUBREAPER of prctl(2).
    static func adoptOrphans() { control(36, 1) }

    /// prctl is variadic, which Swift can't call; on Linux a fixed argument list is passed the same way.
    private static func control(_ option: Int32, _ value: UInt) {
        typealias Prctl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
        guard let symbol = unsafe dlsym(nil, "prctl") else { return }
        _ = unsafe unsafeBitCast(symbol, to: Prctl.self)(option, value, 0, 0, 0)
    }
}

/// What signals leave for the log: a handler may do next to nothing, so it writes the number into a pipe.
/// sigaction(2), signal-safety(7), pipe(7).
enum SignalPipe {
    private static let writeEnd = Atomic<Int32>(-1)
    private static let ownReadEnd = Atomic<Int32>(-1)

    static var readEnd: Int32 { ownReadEnd.load(ordering: .relaxed) }

    static var realTime: ClosedRange<Int32> { __libc_current_sigrtmin()...__libc_current_sigrtmax() }

    static func open() {
        var ends: (Int32, Int32) = (-1, -1)
        let made = unsafe withUnsafeMutableBytes(of: &ends) { bytes in
            unsafe pipe2(bytes.bindMemory(to: Int32.self).baseAddress, O_CLOEXEC | O_NONBLOCK)
        }
        guard made == 0 else { return }
        ownReadEnd.store(ends.0, ordering: .relaxed)
        writeEnd.store(ends.1, ordering: .relaxed)
    }

    /// A full pipe loses the number, and nobody minds.
    static func catchSignal(_ number: Int32) {
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { number in
            let before = errno
            var byte = UInt8(truncatingIfNeeded: number)
            _ = unsafe Glibc.write(SignalPipe.writeEnd.load(ordering: .relaxed), &byte, 1)
            errno = before
        }
        action.sa_flags = Int32(bitPattern: UInt32(SA_RESTART))
        _ = unsafe sigaction(number, &action, nil)
    }

    /// What has come since the last time.
    static func take() -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: 64)
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(readEnd, $0.baseAddress, $0.count) }
        return count > 0 ? Array(chunk[..<count]) : []
    }
}

/// The process's environment. environ(7), setenv(3).
enum ProcessEnvironment {
    /// A copy of it. Of a name that stands there twice, the first, as getenv(3) has it.
    static var all: [String: String] {
        var all: [String: String] = [:]
        guard var next = unsafe heimdallr_environment() else { return all }
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            // One without an equals sign is no variable.
            if let sign = text.utf8.firstIndex(of: UInt8(ascii: "=")) {
                let name = String(text[..<sign])
                if all[name] == nil { all[name] = String(text[text.utf8.index(after: sign)...]) }
            }
            unsafe next += 1
        }
        return all
    }

    /// For what has to be known by name elsewhere in the process.
    /// To be called before the first thread is started: the C library's environment has no lock.
    static func set(_ name: String, to value: String) {
        _ = unsafe setenv(name, value, 1)
    }

    /// To be called before the first thread is started, too.
    static func remove(_ name: String) { _ = unsafe unsetenv(name) }

    /// Nobody sets any once there are threads, so that reading needs no lock.
    static func value(of name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}

/// Who this process acts as. geteuid(2).
enum ProcessIdentity {
    static var user: UInt32 { geteuid() }
}

/// A file descriptor to write to, which other code owns and closes.
struct OutputDescriptor: Sendable {
    let number: Int32

    static let standardOutput = OutputDescriptor(number: STDOUT_FILENO)
    static let standardError = OutputDescriptor(number: STDERR_FILENO)

    /// Device and inode of the file behind it. fstat(2).
    var file: (device: UInt64, inode: UInt64)? {
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { return nil }
        return (UInt64(status.st_dev), UInt64(status.st_ino))
    }

    /// Blocks until all is written. write(2), poll(2).
    /// - Returns: `false` when there is nobody to write to any more.
    @discardableResult
    func write(_ bytes: [UInt8]) -> Bool {
        var start = 0
        while start < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(number, buffer.baseAddress?.advanced(by: start), buffer.count - start)
            }
            if written >= 0 {
                start += written
            } else if errno == EAGAIN {
                // Another program on the same terminal may have made it non-blocking.
                var interest = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&interest, 1, 1000)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    @discardableResult
    func write(_ text: String) -> Bool { write(Array(text.utf8)) }
}

/// A plain blocking connection to a unix socket. Closed with the value.
struct SocketConnection: ~Copyable {
    private let descriptor: Int32

    /// - Parameter timeout: for each read and write, in whole seconds.
    /// - Throws: the `errno` of socket(2) or connect(2).
    init(path: String, timeout: Int) throws(SystemCallError) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemCallError(number: errno) }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard bytes.count < room.count, !bytes.contains(0) else { return false }
            unsafe room.copyBytes(from: bytes)
            return true
        }
        guard fits else { throw SystemCallError(number: ENAMETOOLONG) }
        let connected = unsafe withUnsafePointer(to: address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else { throw SystemCallError(number: errno) }
    }

    /// - Parameters:
    ///   - host: a numeric address or a name; one that stands for all addresses of the machine is loopback here.
    ///   - timeout: for connecting, and for each read and write, in whole seconds.
    /// - Throws: the `errno` of socket(2) or connect(2); `EHOSTUNREACH` where there is no such name.
    init(host: String, port: UInt16, timeout: Int) throws(SystemCallError) {
        let local = ["0.0.0.0": "127.0.0.1", "::": "::1"][host] ?? host
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(local, "\(port)", &hints, &list) == 0 else {
            throw SystemCallError(number: EHOSTUNREACH)
        }
        defer { unsafe freeaddrinfo(list) }
        var fault = EHOSTUNREACH
        var next = unsafe list
        while let entry = unsafe next {
            let info = unsafe entry.pointee
            unsafe next = info.ai_next
            let number = unsafe socket(info.ai_family, info.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard number >= 0 else {
                fault = errno
                continue
            }
            var limit = timeval(tv_sec: timeout, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
            if unsafe connect(number, info.ai_addr, info.ai_addrlen) == 0 {
                descriptor = number
                return
            }
            // connect(2) says EINPROGRESS when SO_SNDTIMEO has passed.
            fault = errno == EINPROGRESS ? ETIMEDOUT : errno
            close(number)
        }
        throw SystemCallError(number: fault)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Nothing more is sent: shutdown(2).
    borrowing func endSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// The user who listens, as the kernel saw it when it began to: SO_PEERCRED of unix(7).
    borrowing func peer() -> UInt32? {
        var peer = heimdallr_peer()
        var length = socklen_t(MemoryLayout<heimdallr_peer>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0, peer.uid != .max else {
            return nil
        }
        return peer.uid
    }

    borrowing func send(_ bytes: [UInt8]) -> Bool { OutputDescriptor(number: descriptor).write(bytes) }

    /// All that comes until the other side closes, or until there is more than `limit`. recv(2).
    /// - Parameter time: for all of it, looked at whenever something has come.
    /// - Returns: `nil` when it did not come in time.
    borrowing func receiveAll(limit: Int, within time: Duration) -> [UInt8]? {
        InputDescriptor(number: descriptor).readAll(limit: limit, until: .now + time)
    }
}

struct SystemCallError: Error {
    let number: Int32

    /// There is no such file, or nobody listens on it.
    var isNobodyThere: Bool { number == ENOENT || number == ECONNREFUSED || number == ENOTDIR }
    var isNoSuchFile: Bool { number == ENOENT }
    var sentence: String { unsafe String(cString: strerror(number)) }
}

/// A connected descriptor to read from, which other code owns and closes.
private struct InputDescriptor {
    let number: Int32

    func readAll(limit: Int, until end: ContinuousClock.Instant? = nil) -> [UInt8]? {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while received.count < limit {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe recv(number, buffer.baseAddress, buffer.count, 0)
            }
            if count > 0 {
                received += chunk[..<count]
                if let end, end < .now { return nil }
            } else if count == 0 {
                return received
            } else if errno != EINTR {
                return nil
            }
        }
        return received
    }
}

/// Turns this process into another program. execvp(3).
enum ProgramExecution {
    /// To be called while there is one thread: it changes the environment.
    /// - Parameter arguments: the program first, searched in `PATH`.
    /// - Returns: only when it failed: why.
    static func replaceProcess(
        _ arguments: [String], setting: [String: String], removing: Set<String>
    ) -> SystemCallError {
        for name in removing { _ = unsafe unsetenv(name) }
        for (name, value) in setting { ProcessEnvironment.set(name, to: value) }
        // The program gets the world as we found it.
        _ = signal(SIGPIPE, SIG_DFL)
        ProcessHygiene.restoreFileLimit()
        var argv: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) }
        unsafe argv.append(nil)
        if let program = unsafe argv[0] { _ = unsafe execvp(program, argv) }
        return SystemCallError(number: errno)
    }
}

/// A plain blocking connection to a port of this machine, as any program would make it. Closed with the value.
struct LoopbackConnection: ~Copyable {
    private let descriptor: Int32

    /// - Parameter timeout: for connecting, and for each read and write, in whole seconds.
    init(port: UInt16, timeout: Int) throws(DemoError) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .noConnection(port: port, errno: errno) }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = unsafe withUnsafePointer(to: address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw .noConnection(port: port, errno: errno) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    borrowing func send(_ text: String) -> Bool { OutputDescriptor(number: descriptor).write(text) }

    /// All that comes until the other side closes, or until there is more than `limit`. recv(2).
    /// - Returns: `nil` when nothing came in time.
    borrowing func receiveAll(limit: Int) -> [UInt8]? { InputDescriptor(number: descriptor).readAll(limit: limit) }
}
