import Administration
import Dispatch
import Logging
import Reactor
import Synchronization

/// Writes finished lines to an output on its own thread, so that no caller waits for a terminal, a pipe or a disk.
///
/// Lines wait in a bounded buffer. When the buffer is full, lines are dropped and counted, and a later notice reports
/// their number. The first line after a pause is written at once. Lines that follow within a short time are written
/// together. The thread is awake during that time, so callers make no system call to wake it.
final class LogWriter: Sendable {
    private struct State: ~Copyable {
        var pending: [UInt8] = []
        /// Number of lines in `pending`.
        var lines = 0
        /// Number of dropped lines that no notice has reported yet.
        var dropped = 0
        /// Failure that lost lines; `nil` if the last lines were dropped for lack of space in the buffer.
        var failure: SystemCallError?
        var counts = LineCounts()
        /// Whether the writer's thread sleeps until the next `write` wakes it.
        var isIdle = true
        var isClosing = false
        var flushes: [DispatchSemaphore] = []
    }

    let format: LogLine.Format
    /// Whether each line begins with its priority for systemd's journal.
    private let showsPriority: Bool
    private let output: any LineOutput
    private let notice: @Sendable (_ dropped: Int, _ failure: SystemCallError?) -> [UInt8]
    private let capacity: Int
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - output: destination of the lines. The writer does not close it.
    ///   - notice: makes the line that reports dropped lines; `nil` makes a warning in `format`.
    init(
        format: LogLine.Format, output: any LineOutput = LineDescriptor.standardError, capacity: Int = 1 << 20,
        showsPriority: Bool = false,
        notice: (@Sendable (_ dropped: Int, _ failure: SystemCallError?) -> [UInt8])? = nil
    ) {
        self.format = format
        self.showsPriority = showsPriority
        let mark = showsPriority ? Array(Journal.priority(.warning).utf8) : []
        self.notice = notice ?? { mark + Self.notice(of: $0, $1, format) }
        self.output = output
        self.capacity = capacity
        DispatchQueue(label: "log").async { self.work() }
    }

    /// Adds one line to the buffer, and a line feed at its end if there is none. The line must not contain other line
    /// feeds. Any thread. Never waits for the output.
    func write(_ line: [UInt8], level: Logger.Level = .info) {
        let wakes = state.withLock { state in
            guard !state.isClosing, state.pending.count + line.count < capacity else {
                state.dropped += 1
                state.counts.dropped += 1
                state.failure = nil
                return false
            }
            state.lines += 1
            if showsPriority { state.pending += Journal.priority(level).utf8 }
            state.pending += line
            if line.last != UInt8(ascii: "\n") { state.pending.append(UInt8(ascii: "\n")) }
            defer { state.isIdle = false }
            return state.isIdle
        }
        if wakes { wake.signal() }
    }

    /// Numbers of written and dropped lines since the start. Waiting lines are in neither number.
    var counts: LineCounts { state.withLock { $0.counts } }

    /// Blocks until all accepted lines are written or a write has failed, but for `limit` at most.
    func flush(limit: DispatchTimeInterval = .seconds(2)) {
        let flushed = state.withLock { state -> DispatchSemaphore? in
            guard !state.isIdle else { return nil }
            let flushed = DispatchSemaphore(value: 0)
            state.flushes.append(flushed)
            return flushed
        }
        guard let flushed else { return }
        wake.signal()
        _ = flushed.wait(timeout: .now() + limit)
    }

    /// Writes the accepted lines and ends the thread. Later lines are dropped.
    func close() {
        flush()
        state.withLock { $0.isClosing = true }
        wake.signal()
    }

    private static let pause = DispatchTimeInterval.milliseconds(20)
    /// Pause after a failed write, for example to a full disk.
    private static let pauseAfterFailure = DispatchTimeInterval.seconds(1)
    /// A buffer larger than this number of bytes is freed after use.
    private static let keptCapacity = 64 * 1024

    private func work() {
        var batch: [UInt8] = []
        while true {
            let (lines, dropped, failure) = state.withLock { state in
                swap(&batch, &state.pending)
                defer { (state.lines, state.dropped) = (0, 0) }
                return (state.lines, state.dropped, state.failure)
            }
            // A failed write lost lines from before this batch; a full buffer lost lines from after it.
            if dropped > 0 { batch.insert(contentsOf: notice(dropped, failure), at: failure == nil ? batch.count : 0) }
            let wrote = !batch.isEmpty
            let result: (count: Int, failure: SystemCallError?) = wrote ? output.take(batch) : (0, nil)
            let rest = batch[result.count...]
            let hasFailed = !rest.isEmpty
            // After a failed write, the notice in the batch is lost too. The notice does not count as a lost line.
            let unreported = hasFailed ? dropped : 0
            let ends = rest.count(where: { $0 == UInt8(ascii: "\n") })
            let lost = min(max(0, ends - (unreported > 0 ? 1 : 0)), lines)
            if batch.capacity > Self.keptCapacity { batch = [] } else { batch.removeAll(keepingCapacity: true) }

            let (isClosing, isIdle, flushes) = state.withLock { state in
                state.counts.written += UInt64(lines - lost)
                if hasFailed {
                    state.dropped += unreported + lost
                    state.counts.dropped += UInt64(lost)
                    state.failure = result.failure
                }
                let isDone = state.pending.isEmpty && (state.dropped == 0 || hasFailed)
                // The thread sleeps without a time limit only if this round had no lines.
                state.isIdle = isDone && !wrote
                defer { if isDone { state.flushes = [] } }
                return (state.isClosing, state.isIdle, isDone ? state.flushes : [])
            }
            for flush in flushes { flush.signal() }
            if isClosing { return }
            if isIdle {
                wake.wait()
            } else {
                _ = wake.wait(timeout: .now() + (hasFailed ? Self.pauseAfterFailure : Self.pause))
            }
        }
    }

    private static func notice(of dropped: Int, _ failure: SystemCallError?, _ format: LogLine.Format) -> [UInt8] {
        LogLine.bytes(
            format, time: .now, level: .warning, message: "log lines dropped",
            fields: [
                "count": .stringConvertible(dropped),
                "reason": "\(failure?.sentence ?? "the reader of the log is too slow")",
            ])
    }
}
