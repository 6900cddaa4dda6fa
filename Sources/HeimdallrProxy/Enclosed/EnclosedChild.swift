import ArgumentParser
import Configuration
import Enclosure
import Glibc
import Proxy
import Reactor

/// The program of `exec --serve --enclose`, from the start of its process on.
struct EnclosedChild {
    let program: EnclosedProgram
    private let process: ChildProgram

    /// Starts the process, which makes the namespaces with all sockets. Blocks.
    /// - Parameters:
    ///   - words: the program, searched in `PATH`, then its arguments.
    ///   - removing: variables to remove from the environment.
    init(
        _ words: [String], allowed: [AllowedAddress], _ settings: Configuration, removing: Set<String>,
        as start: StartState
    ) throws(EnclosureRefusal) {
        let own: Int32
        do throws(SystemCallError) {
            let ends = try SystemSockets.pair()
            defer { close(ends.1) }
            own = ends.0
            process = try ChildProgram(
                EnclosedStart.words(.parent, link: start.free, words), executable: CommandKeeper.executable,
                setting: [:], removing: removing, as: start, link: ends.1)
        } catch { throw EnclosureRefusal(description: "\(error.advice)") }
        let credentials = PeerCredentials(user: geteuid(), group: getegid(), process: process.pid)
        program = try EnclosedProgram(Enclosure(link: own, process: credentials), allowed: allowed, settings)
    }

    static let refusal = "the program was not started, because it can't be enclosed"

    /// Prints the fault.
    static func notEnclosed(_ fault: EnclosureRefusal) -> ExitCode {
        ExitStatus.notEnclosed.error("\(refusal): \(fault)")
    }

    /// Lets the process become the program. Blocks.
    /// - Throws: `SystemCallError` if the program can't be run; the exit code, after printing the fault, if it can't be
    ///   enclosed.
    func start(setting: [String: String], _ mounts: EnclosureMounts) throws -> ChildProgram {
        do throws(EnclosureRefusal) {
            for lack in try program.start(setting: setting, mounts) { ErrorOutput.warning(lack.sentence) }
        } catch {
            if let number = error.programFault { throw SystemCallError(number: number) }
            throw Self.notEnclosed(error)
        }
        return process
    }
}
