import Glibc
import Heimdallr
import Reactor

/// A program that prints a secret: `{command: [program, argument, …]}`. It runs without a shell. No output is shown.
struct SecretCommand: Sendable {
    /// The program, then its arguments.
    let words: [String]
    /// The program's whole environment: that of the proxy, without the variables of the configuration.
    let environment: [String: String]

    /// The file that is run as `CommandKeeper`.
    var keeper = CommandKeeper.executable

    /// Maximum run time.
    var time = Duration.seconds(10)
    /// Maximum size of the output in bytes.
    static let limit = 64 * 1024

    /// The name in messages. It leaves out the arguments, which may be secret.
    var name: String { "the command \(words.first ?? "")" }

    func secret() async throws -> Secret { try await BlockingWork.run { try run() } }

    /// Blocks until the command has ended by itself, or was killed with all its descendants.
    func run() throws(SecretProviderError) -> Secret {
        let deadline = ContinuousClock.now + time
        var output = try started { () throws(SystemCallError) in try ChildOutput(limit: Self.limit) }
        let descriptor = output.writeEnd
        let command = try started { () throws(SystemCallError) in
            try KeptCommand(words, environment: environment, output: descriptor, keeper: keeper)
        }
        output.closeWriteEnd()
        var progress = ChildOutput.Progress.nothing
        var ending: ChildProgram.Ending?
        // A background process of the command may keep the output open. The loop then stops after the command's end.
        while progress < .ended, ContinuousClock.now < deadline {
            progress = output.read(waiting: ending == nil ? Self.pause : 0)
            if progress == .nothing, ending != nil { break }
            if ending == nil { ending = try ended(command) }
        }
        guard progress != .tooMuch else {
            throw SecretProviderError("\(name) printed more than \(Self.limit / 1024) KiB")
        }
        while ending == nil, ContinuousClock.now < deadline {
            usleep(2000)
            ending = try ended(command)
        }
        guard let ending else {
            throw SecretProviderError("\(name) did not end in \(time.components.seconds) s, and was killed")
        }
        guard ending == .exited(0) else { throw SecretProviderError("\(name) failed: \(ending.inWords)") }
        let secret = output.withText { Secret($0) }
        guard !secret.isEmpty else { throw SecretProviderError("\(name) printed nothing") }
        return secret
    }

    private func ended(_ command: borrowing KeptCommand) throws(SecretProviderError) -> ChildProgram.Ending? {
        switch command.report() {
        case nil: return nil
        case .ended(let ending)?: return ending
        case .notStarted(let number)?: throw couldNotBeRun(SystemCallError(number: number))
        }
    }

    private func started<Value: ~Copyable>(
        _ step: () throws(SystemCallError) -> Value
    ) throws(SecretProviderError) -> Value {
        do throws(SystemCallError) { return try step() } catch { throw couldNotBeRun(error) }
    }

    private func couldNotBeRun(_ error: SystemCallError) -> SecretProviderError {
        SecretProviderError("\(name) could not be run: \(error.advice)")
    }

    /// Interval between two checks for the command's end while its output stays open, in milliseconds.
    private static let pause: Int32 = 20
}
