import ArgumentParser
import Enclosure
import Glibc

/// A process of this executable that encloses itself and then becomes a program. It has one thread, and no secrets.
enum EnclosedStart {
    /// The process that serves the program.
    enum Launcher: String {
        /// This process's parent, which tells what fails.
        case parent
        /// A proxy that runs. This process tells what fails.
        case proxy
    }

    static var isThisProcess: Bool { ProcessArguments.all?.first == EnclosureProcess.name }

    /// Returns the arguments of such a process.
    static func words(_ launcher: Launcher, link: Int32, _ program: [String]) -> [String] {
        [EnclosureProcess.name, launcher.rawValue, "\(link)"] + program
    }

    static func run() -> Never {
        let words = ProcessArguments.all ?? []
        guard words.count > 3, let launcher = Launcher(rawValue: words[1]), let link = Int32(words[2]) else {
            ProcessHygiene.end(ExitStatus.usage.rawValue)
        }
        let program = Array(words.dropFirst(3))
        let process = EnclosureProcess(link: link) { if launcher == .proxy { ErrorOutput.warning($0.sentence) } }
        let refusal = process.become(program)
        guard launcher == .proxy else { ProcessHygiene.end(ExitStatus.notEnclosed.rawValue) }
        let code =
            refusal.programFault.map { ExecCommand.exitCode(of: SystemCallError(number: $0), running: program[0]) }
            ?? EnclosedChild.notEnclosed(refusal)
        ProcessHygiene.end(code.rawValue)
    }
}
