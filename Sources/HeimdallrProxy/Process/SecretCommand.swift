import Glibc
import Heimdallr
import Synchronization

/// A program that prints a secret: `{command: [program, argument, …]}`. No shell reads it, and nothing it prints is shown.
struct SecretCommand: Sendable {
    /// The program first.
    let words: [String]
    /// All that it sees: ours, without what the configuration took from it.
    let environment: [String: String]

    /// So long it may take.
    static let time = Duration.seconds(10)
    /// So many bytes it may print.
    static let limit = 64 * 1024

    /// For messages. Arguments may hold what nobody should read.
    var name: String { "the command \(words.first ?? "")" }

    /// Runs it on a thread of its own.
    /// - Throws: `SecretProviderError`
    func secret() async throws -> Secret {
        try await BlockingWork.run { Result { () throws(SecretProviderError) in try run() } }.get()
    }

    /// Blocks until it has ended, or was ended: it, and what it has started.
    func run() throws(SecretProviderError) -> Secret {
        let deadline = ContinuousClock.now + Self.time
        var output = try started { () throws(SystemCallError) in try ChildOutput(limit: Self.limit) }
        let descriptor = output.writeEnd
        let program = try started { () throws(SystemCallError) in
            try ChildProgram(words, environment: environment, output: descriptor)
        }
        output.closeWriteEnd()
        Self.running.withLock { _ = $0.insert(program.pid) }
        defer { Self.running.withLock { _ = $0.remove(program.pid) } }
        var progress = ChildOutput.Progress.nothing
        var ending: ChildProgram.Ending?
        // What it left running may hold its output open for ever; then its own end counts.
        while progress < .ended, ContinuousClock.now < deadline {
            progress = output.read(waiting: ending == nil ? Self.pause : 0)
            if progress == .nothing, ending != nil { break }
            ending = ending ?? program.endingWithGroup()
        }
        guard progress != .tooMuch else {
            end(program, ending)
            throw SecretProviderError("\(name) printed more than \(Self.limit / 1024) KiB")
        }
        while ending == nil, ContinuousClock.now < deadline {
            usleep(2000)
            ending = program.endingWithGroup()
        }
        guard let ending else {
            end(program, nil)
            throw SecretProviderError("\(name) did not end in \(Self.time.components.seconds) s, and was ended")
        }
        guard ending == .exited(0) else { throw SecretProviderError("\(name) failed: \(ending.inWords)") }
        let secret = output.withText { Secret($0) }
        guard !secret.isEmpty else { throw SecretProviderError("\(name) printed nothing") }
        return secret
    }

    /// Process groups of those that run now.
    private static let running = Mutex<Set<Int32>>([])

    /// To be called when this process ends: nobody waits for what they print any more.
    static func endAll() {
        for group in running.withLock({ $0 }) { _ = kill(-group, SIGKILL) }
    }

    private func started<Value: ~Copyable>(
        _ step: () throws(SystemCallError) -> Value
    ) throws(SecretProviderError) -> Value {
        do throws(SystemCallError) { return try step() } catch {
            throw SecretProviderError("\(name) could not be run: \(error.sentence)")
        }
    }

    /// In milliseconds: how soon its end is seen where its output stays open.
    private static let pause: Int32 = 20

    private func end(_ program: ChildProgram, _ ending: ChildProgram.Ending?) {
        guard ending == nil else { return }
        program.kill(SIGKILL)
        // What was killed ends in no time, unless the kernel holds it.
        for _ in 0..<500 {
            guard program.ending() == nil else { return }
            usleep(2000)
        }
    }
}
