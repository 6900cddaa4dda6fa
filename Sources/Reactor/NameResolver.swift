import CLinux
import Glibc
import Synchronization

/// A name's addresses, the preferred one first (RFC 6724), or the reason why there are none.
public typealias NameAnswer = Result<[NumericAddress], NameError>

public struct NameError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
    /// Whether a name server said that the name has no address. Otherwise the last good addresses may still be right.
    public let isFinal: Bool

    public init(_ description: String, isFinal: Bool = false) {
        self.description = description
        self.isFinal = isFinal
    }
}

/// Resolves names on separate threads with getaddrinfo(3), which honours /etc/hosts, nsswitch.conf(5) and search
/// domains. All loops of the process share the look-ups and the cached answers. An answer is cached for five seconds, a
/// failure for one second. While no name server answers, or an answer takes long, the last good addresses serve for up to
/// an hour. `NameTable` limits concurrent look-ups. A question has no deadline: the caller keeps time, and abandons the
/// question.
public final class NameResolver: Sendable, Equatable {
    public static let shared = NameResolver()

    /// Found addresses that are tried last.
    public let silent = SilentAddresses()

    private struct State {
        var table: NameTable<LoopBound<NameQuestion>>
        var lastID: UInt64 = 0
    }
    private let state: Mutex<State>
    private let patience: Duration
    private let lookUp: @Sendable (String, NameAttempt.Family) -> NameAnswer
    /// Files that decide how the system resolves names, and their watch, which the first look-up starts.
    private let files: Set<String>
    private let watch = Mutex<FileWatch?>(nil)

    public convenience init() { self.init(files: NameResolver.systemFiles, lookUp: NameResolver.system) }

    /// - Parameters:
    ///   - files: files whose change makes all look-ups begin anew.
    ///   - lookUp: resolves a name. It may block, because each call has a separate thread.
    init(
        limits: NameLimits = NameLimits(), files: Set<String> = [],
        lookUp: @escaping @Sendable (String, NameAttempt.Family) -> NameAnswer
    ) {
        state = Mutex(State(table: NameTable(limits)))
        patience = limits.patience
        self.files = files
        self.lookUp = lookUp
    }

    /// Makes a resolver that asks once for each name, however long the answer takes.
    convenience init(limits: NameLimits = NameLimits(), lookUp: @escaping @Sendable (String) -> NameAnswer) {
        var limits = limits
        limits.patience = .seconds(3600)
        self.init(limits: limits) { name, _ in lookUp(name) }
    }

    public static func == (left: NameResolver, right: NameResolver) -> Bool { left === right }

    /// Asks for the addresses of a name, in upper or lower case. Never blocks. On `loop`'s thread only.
    /// - Parameters:
    ///   - isFromProgram: whether a program chose the name. Look-ups of such names never take all slots.
    ///   - done: called once with the answer on the loop's thread. If the answer is known, called before this returns.
    /// - Returns: the question, by which the caller can abandon it; `nil` if the answer was known.
    public func ask(
        _ name: String, isFromProgram: Bool = false, on loop: EventLoop, done: @escaping (NameAnswer) -> Void
    ) -> NameQuestion? {
        let name = name.lowercased()
        if let address = NumericAddress(name) {
            done(.success([address]))
            return nil
        }
        // These names are never sent to a name server (RFC 6761, section 6.3).
        if name == "localhost" || name.hasSuffix(".localhost") || name == "localhost." || name.hasSuffix(".localhost.")
        {
            done(.success(NumericAddress.loopback))
            return nil
        }
        let question = NameQuestion(name, self, done)
        let bound = LoopBound(question, on: loop)
        let reply = state.withLock { state in
            state.lastID += 1
            question.id = state.lastID
            return state.table.ask(
                name, isFromProgram: isFromProgram, id: state.lastID, asker: bound, now: .current())
        }
        switch reply {
        case .known(let answer, let starts):
            question.answer(answer)
            for attempt in starts { start(attempt) }
        case .refused:
            question.answer(.failure(NameError("\(name): too many look-ups wait; the name server does not answer")))
        case .pending(let starts):
            question.wait(patience, on: loop)
            for attempt in starts { start(attempt) }
            // If no thread could be started, `finish` has sent a failure to the loop as the answer.
            return question
        }
        return nil
    }

    fileprivate func leave(_ name: String, _ id: UInt64) { state.withLock { $0.table.leave(name, id: id) } }

    fileprivate func waitedLong(_ name: String, _ id: UInt64) {
        perform(state.withLock { $0.table.waitedLong(name, id: id, now: .current()) })
    }

    private func start(_ attempt: NameAttempt) {
        watchFiles()
        do throws(SystemError) {
            try startThread("names") { [self] in finish(attempt, lookUp(attempt.name, attempt.family)) }
        } catch {
            finish(attempt, .failure(NameError("\(attempt.name): \(error)")))
        }
    }

    private func finish(_ attempt: NameAttempt, _ answer: NameAnswer) {
        let step = state.withLock { $0.table.finish(attempt, answer, now: .current()) }
        perform(step)
        guard step.delays else { return }
        // This is the look-up's own thread.
        usleep(UInt32(clamping: NameAttempt.resolutionDelay.wholeMilliseconds * 1000))
        perform(state.withLock { $0.table.delayEnded(attempt, now: .current()) })
    }

    private func perform(_ step: NameTable<LoopBound<NameQuestion>>.Step) {
        for (asker, answer) in step.answers { asker.loop.execute { asker.value.answer(answer) } }
        for attempt in step.starts { start(attempt) }
    }

    // MARK: The system's resolver

    private func watchFiles() {
        guard !files.isEmpty else { return }
        watch.withLock { watch in
            guard watch == nil else { return }
            let isFirst = Atomic(true)
            // Without a watch, a look-up that takes long is still not shared with new questions.
            watch = try? FileWatch { [weak self] _ in
                // The first call reports the files as they are.
                guard let self, !isFirst.exchange(false, ordering: .relaxed) else { return }
                perform(state.withLock { $0.table.systemChanged(now: .current()) })
            }
            watch?.watch(files)
        }
    }
}

/// A pending question for a name's addresses. Loop's thread only.
public final class NameQuestion {
    private let name: String
    private let resolver: NameResolver
    private var done: ((NameAnswer) -> Void)?
    private var timer: LoopTimer?
    fileprivate var id: UInt64 = 0

    fileprivate init(_ name: String, _ resolver: NameResolver, _ done: @escaping (NameAnswer) -> Void) {
        self.name = name
        self.resolver = resolver
        self.done = done
    }

    /// Abandons the question: `done` is no longer called. The look-up itself goes on.
    public func abandon() {
        guard done != nil else { return }
        done = nil
        timer = nil
        resolver.leave(name, id)
    }

    fileprivate func wait(_ patience: Duration, on loop: EventLoop) {
        timer = LoopTimer(on: loop) { [unowned self] in resolver.waitedLong(name, id) }
        timer?.schedule(after: patience)
    }

    fileprivate func answer(_ answer: NameAnswer) {
        let done = done
        self.done = nil
        timer = nil
        done?(answer)
    }
}
