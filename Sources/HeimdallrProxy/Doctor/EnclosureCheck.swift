import Configuration
import Enclosure
import Reactor

/// Checks whether this machine can enclose programs (`exec --enclose`), by a process that makes the namespaces and ends.
enum EnclosureCheck {
    static func finding(_ configuration: Configuration) async -> Finding {
        let start = StartState()
        let refusal = await BlockingWork.run { () -> EnclosureRefusal? in
            do throws(EnclosureRefusal) {
                // Its end of the connection closes with this value, and so ends the process.
                _ = try EnclosedChild(["true"], allowed: [], configuration, removing: [], as: start)
                return nil
            } catch { return error }
        }
        guard let refusal else { return .good("enclosure", "programs can be enclosed: exec --enclose") }
        return .skipped("enclosure", "exec --enclose can't be used here: \(refusal)")
    }
}
