import Synchronization

/// Destination of whole lines.
protocol LineOutput: Sendable {
    /// Blocks until all bytes are written, or a write fails.
    /// - Returns: the number of bytes written, and the failure. The lines after these bytes were not written.
    func take(_ bytes: [UInt8]) -> (count: Int, failure: SystemCallError?)
}

/// A descriptor to which whole lines are written. All writers of one open file share one object, so that lines of
/// several writers stay apart, and a line that was cut by a failure is closed before the next line. Any thread.
final class LineDescriptor: LineOutput {
    private struct State {
        var number: Int32
        /// Whether the output ends in the middle of a line.
        var isTorn = false
    }

    /// Standard error: the log, the audit stream, and the errors of commands.
    static let standardError = LineDescriptor(OutputDescriptor.standardError.number)

    private let state: Mutex<State>

    /// The owner of the descriptor closes it.
    init(_ number: Int32) { state = Mutex(State(number: number)) }

    /// Writes to another descriptor from now on.
    /// - Returns: the former descriptor, which is no longer used.
    func replace(with next: Int32) -> Int32 {
        state.withLock { state in
            defer { state = State(number: next) }
            return state.number
        }
    }

    var number: Int32 { state.withLock { $0.number } }

    func take(_ bytes: [UInt8]) -> (count: Int, failure: SystemCallError?) {
        state.withLock { state in
            let output = OutputDescriptor(number: state.number)
            if state.isTorn {
                if let failure = output.put([UInt8(ascii: "\n")]).failure { return (0, failure) }
                state.isTorn = false
            }
            let (count, failure) = output.put(bytes)
            if count > 0 { state.isTorn = bytes[count - 1] != UInt8(ascii: "\n") }
            return (count, failure)
        }
    }
}
