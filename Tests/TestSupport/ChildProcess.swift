import Foundation
import Glibc
import Synchronization

/// A program that a test started and that can't outlive the test. The last reference kills the process group when it
/// goes. The kernel kills the program when the test process dies.
public final class ChildProcess: Sendable {
    public enum Ending: Equatable, Sendable { case exited(Int32), signalled(Int32) }

    fileprivate struct Streams {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var openStreams = 2
        var ending: Ending?
    }

    /// Shared with the threads that read and wait, which thereby keep nothing else alive.
    fileprivate final class State: Sendable { let streams = Mutex(Streams()) }

    public let arguments: [String]
    public let pid: Int32
    private let state = State()

    /// Starts `arguments[0]`, searched in `PATH`, with standard input from `input` or empty.
    /// - Parameters:
    ///   - environment: added to the test's own environment; `nil` as a value removes a variable.
    ///   - directory: working directory; `nil`: that of the test.
    /// - Throws: `TestFailure` when the start fails. For an unknown program, the exit code is 127.
    public init(
        _ arguments: [String], environment: [String: String?] = [:], directory: String? = nil, input: [UInt8] = []
    ) throws {
        self.arguments = arguments
        var merged = ProcessInfo.processInfo.environment
        for (name, value) in environment { merged[name] = value }
        let output = try Pipe.make()
        let errors = try Pipe.make()
        let source = input.isEmpty ? nil : try Pipe.make()
        pid = try Spawner.shared.spawn(
            arguments, environment: merged.map { "\($0)=\($1)" }, directory: directory,
            input: source?.read ?? -1, output: output.write, errors: errors.write)
        Glibc.close(output.write)
        Glibc.close(errors.write)
        if let source {
            Glibc.close(source.read)
            Thread.detachNewThread {
                Pipe.write(input, to: source.write)
                Glibc.close(source.write)
            }
        }
        let state = state
        let pid = pid
        Thread.detachNewThread { state.drain(output.read) { $0.output.append(contentsOf: $1) } }
        Thread.detachNewThread { state.drain(errors.read) { $0.errors.append(contentsOf: $1) } }
        Thread.detachNewThread { state.reap(pid) }
    }

    deinit {
        kill()
        Evidence.ended(self)
    }

    public var output: String { state.streams.withLock { String(decoding: $0.output, as: UTF8.self) } }
    public var outputBytes: [UInt8] { state.streams.withLock { $0.output } }
    public var errors: String { state.streams.withLock { String(decoding: $0.errors, as: UTF8.self) } }
    /// `nil` while the program runs.
    public var ending: Ending? { state.streams.withLock { $0.ending } }

    public func signal(_ number: Int32) {
        state.streams.withLock { if $0.ending == nil { _ = Glibc.kill(pid, number) } }
    }

    /// Sends SIGKILL to the process and its children, for the end of a test.
    public func kill() {
        state.streams.withLock { if $0.ending == nil { _ = Glibc.kill(-pid, SIGKILL) } }
    }

    /// Waits for the end of the program and of its output.
    /// - Throws: `TestFailure` with the output when `limit` passes.
    @discardableResult
    public func ended(within limit: Duration = .seconds(60)) async throws -> Ending {
        do {
            return try await eventually("end of \(arguments.joined(separator: " "))", within: limit) {
                self.state.streams.withLock { $0.openStreams == 0 ? $0.ending : nil }
            }
        } catch let failure as TestFailure { throw TestFailure("\(failure)\n\(transcript)") }
    }

    /// Sends SIGTERM, then SIGKILL if the program does not end within `grace`.
    @discardableResult
    public func stop(grace: Duration = .seconds(10)) async throws -> Ending {
        signal(SIGTERM)
        if let ending = try? await ended(within: grace) { return ending }
        kill()
        return try await ended(within: .seconds(10))
    }

    /// The program's whole output, for a failure's message.
    public var transcript: String {
        let fate = ending.map { "\($0)" } ?? "running"
        return "--- \(arguments.joined(separator: " ")): \(fate)\n\(output)--- standard error\n\(errors)---"
    }

    /// Runs a program to its end.
    public static func run(
        _ arguments: [String], environment: [String: String?] = [:], directory: String? = nil, input: [UInt8] = [],
        within limit: Duration = .seconds(60)
    ) async throws -> ChildProcess {
        let child = try ChildProcess(arguments, environment: environment, directory: directory, input: input)
        try await child.ended(within: limit)
        return child
    }

    /// Runs a program to its end and returns its standard output.
    /// - Throws: `TestFailure` with the whole output if the exit code is not 0.
    @discardableResult
    public static func output(
        of arguments: [String], environment: [String: String?] = [:], directory: String? = nil, input: [UInt8] = [],
        within limit: Duration = .seconds(60)
    ) async throws -> String {
        let child = try await run(
            arguments, environment: environment, directory: directory, input: input, within: limit)
        guard child.ending == .exited(0) else {
            throw TestFailure("ended with \(child.ending.map { "\($0)" } ?? "nothing")\n\(child.transcript)")
        }
        return child.output
    }

    /// The port, from the first line that a server prints.
    public func printedPort() async throws -> UInt16 {
        try await eventually("the server's port") {
            if ending != nil { throw TestFailure(transcript) }
            guard let end = output.firstIndex(of: "\n") else { return nil }
            return UInt16(output[..<end])
        }
    }

    /// The process's arguments from the kernel, joined by spaces.
    /// - Throws: when there is no such process, or the process has ended and only waits to be reaped.
    public static func commandLine(of pid: Int32) throws -> String {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/cmdline"))
        guard !bytes.isEmpty else { throw TestFailure("process \(pid) has ended") }
        return String(decoding: bytes, as: UTF8.self).replacing("\0", with: " ")
    }

    /// Resident memory now, in bytes (`VmRSS` of proc(5)).
    public func residentMemory() throws -> Int { try memory("VmRSS") }

    /// Resident memory without pages of files, in bytes (`RssAnon` of proc(5)).
    public func anonymousMemory() throws -> Int { try memory("RssAnon") }

    /// The highest resident memory so far, in bytes (`VmHWM` of proc(5)).
    public func peakResidentMemory() throws -> Int { try memory("VmHWM") }

    private func memory(_ field: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        for line in status.split(separator: "\n") where line.hasPrefix(field + ":") {
            if let kibibytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({
                Int($0)
            }) {
                return kibibytes * 1024
            }
        }
        throw TestFailure("no \(field) for process \(pid)")
    }
}

extension ChildProcess.State {
    fileprivate func drain(_ descriptor: Int32, _ append: (inout ChildProcess.Streams, ArraySlice<UInt8>) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            streams.withLock { append(&$0, buffer[..<count]) }
        }
        close(descriptor)
        streams.withLock { $0.openStreams -= 1 }
    }

    /// Reaps the process under the lock of `signal`. The pid is reserved until then, so no signal hits another process.
    fileprivate func reap(_ pid: Int32) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        streams.withLock {
            var status: Int32 = 0
            while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7f
            $0.ending = signal == 0 ? .exited((status >> 8) & 0xff) : .signalled(signal)
        }
    }
}

private struct Pipe {
    var read: Int32
    var write: Int32

    static func make() throws -> Pipe {
        let ends = Descriptors.make { descriptors in
            var ends: [Int32] = [-1, -1]
            if unsafe pipe(&ends) == 0 { descriptors = ends }
            return descriptors
        }
        guard ends.count == 2 else { throw TestFailure("no pipe: \(errno)") }
        return Pipe(read: ends[0], write: ends[1])
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return }
            sent += count
        }
    }
}

/// One thread that starts every child and never ends. The kernel sends a parent-death signal (prctl(2),
/// `PR_SET_PDEATHSIG`) when the forking *thread* ends, so the end of a pool's thread would kill children at random.
private final class Spawner: Sendable {
    static let shared = Spawner()

    private struct Job: Sendable {
        var work: @Sendable () -> Void
    }
    private let jobs = Mutex<[Job]>([])
    private let wake = DispatchSemaphore(value: 0)

    private init() {
        // A child that ends without reading its input must not end the tests.
        _ = Glibc.signal(SIGPIPE, SIG_IGN)
        Thread.detachNewThread { [self] in
            while true {
                wake.wait()
                jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }?.work()
            }
        }
    }

    func spawn(
        _ arguments: [String], environment: [String], directory: String?, input: Int32, output: Int32, errors: Int32
    ) throws -> Int32 {
        let done = DispatchSemaphore(value: 0)
        let box = Box()
        jobs.withLock {
            $0.append(
                Job {
                    box.value.withLock {
                        $0 = Spawner.start(
                            arguments, environment: environment, directory: directory, input: input, output: output,
                            errors: errors)
                    }
                    done.signal()
                })
        }
        wake.signal()
        done.wait()
        guard let pid = box.value.withLock({ $0 }) else { throw TestFailure("not started") }
        return try pid.get()
    }

    private final class Box: Sendable { let value = Mutex<Result<Int32, TestFailure>?>(nil) }

    private static func start(
        _ arguments: [String], environment: [String], directory: String?, input: Int32, output: Int32, errors: Int32
    ) -> Result<Int32, TestFailure> {
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        if input >= 0 {
            unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        unsafe posix_spawn_file_actions_adddup2(&actions, output, 1)
        unsafe posix_spawn_file_actions_adddup2(&actions, errors, 2)
        var defaults = sigset_t()
        unsafe sigfillset(&defaults)
        unsafe posix_spawnattr_setsigdefault(&attributes, &defaults)
        var mask = sigset_t()
        unsafe sigemptyset(&mask)
        unsafe posix_spawnattr_setsigmask(&attributes, &mask)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))

        let folder = directory.map { ["env", "--chdir", $0, "--"] } ?? []
        let command = ["setpriv", "--pdeathsig", "KILL", "--"] + folder + arguments
        var argv = unsafe command.map { unsafe strdup($0) } + [nil]
        var envp = unsafe environment.map { unsafe strdup($0) } + [nil]
        defer {
            unsafe (argv + envp).forEach { unsafe free($0) }
        }
        var pid: pid_t = 0
        let code = Descriptors.whileNoneIsMade {
            unsafe posix_spawnp(&pid, "setpriv", &actions, &attributes, &argv, &envp)
        }
        return code == 0 ? .success(pid) : .failure(TestFailure("can't start \(arguments): error \(code)"))
    }
}
