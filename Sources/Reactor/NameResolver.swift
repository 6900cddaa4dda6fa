import CLinux
import Glibc
import Synchronization

/// A name's addresses, the preferred one first (RFC 6724), or the reason why there are none.
public typealias NameAnswer = Result<[NumericAddress], NameError>

public struct NameError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}

/// Resolves names on separate threads with getaddrinfo(3), which honours /etc/hosts, nsswitch.conf(5) and search
/// domains. All loops of the process share the look-ups and the cached answers. An answer is cached for five seconds, a
/// failure for one second. `NameTable` limits concurrent look-ups. A question has no deadline: the caller keeps time,
/// and abandons the question.
public final class NameResolver: Sendable, Equatable {
    public static let shared = NameResolver()

    private struct State {
        var table: NameTable<LoopBound<NameQuestion>>
        var lastID: UInt64 = 0
    }
    private let state: Mutex<State>
    private let lookUp: @Sendable (String) -> NameAnswer

    public convenience init() { self.init(limits: .init(), lookUp: NameResolver.system) }

    /// - Parameter lookUp: resolves a name. It may block, because each call has a separate thread.
    init(
        limits: NameTable<LoopBound<NameQuestion>>.Limits = .init(), lookUp: @escaping @Sendable (String) -> NameAnswer
    ) {
        state = Mutex(State(table: NameTable(limits)))
        self.lookUp = lookUp
    }

    public static func == (left: NameResolver, right: NameResolver) -> Bool { left === right }

    /// Asks for the addresses of a name, in upper or lower case. Never blocks. On `loop`'s thread only.
    /// - Parameters:
    ///   - isFromClient: whether a client chose the name. Look-ups of such names never take all slots.
    ///   - done: called once with the answer on the loop's thread. If the answer is known, called before this returns.
    /// - Returns: the question, by which the caller can abandon it; `nil` if the answer was known.
    public func ask(
        _ name: String, isFromClient: Bool = false, on loop: EventLoop, done: @escaping (NameAnswer) -> Void
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
                name, isFromClient: isFromClient, id: state.lastID, asker: bound, now: .current())
        }
        switch reply {
        case .known(let answer): question.answer(answer)
        case .refused:
            question.answer(.failure(NameError("\(name): too many look-ups wait; the name server does not answer")))
        case .pending(let starts):
            if starts { start(name) }
            // If no thread could be started, `finish` has sent a failure to the loop as the answer.
            return question
        }
        return nil
    }

    fileprivate func leave(_ name: String, _ id: UInt64) { state.withLock { $0.table.leave(name, id: id) } }

    private func start(_ name: String) {
        do throws(SystemError) {
            try startThread("names") { [self] in finish(name, lookUp(name)) }
        } catch {
            finish(name, .failure(NameError("\(name): \(error)")))
        }
    }

    private func finish(_ name: String, _ answer: NameAnswer) {
        let (askers, starts) = state.withLock { $0.table.finish(name, answer, now: .current()) }
        for asker in askers { asker.loop.execute { asker.value.answer(answer) } }
        for name in starts { start(name) }
    }
}

/// A pending question for a name's addresses. Loop's thread only.
public final class NameQuestion {
    private let name: String
    private let resolver: NameResolver
    private var done: ((NameAnswer) -> Void)?
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
        resolver.leave(name, id)
    }

    fileprivate func answer(_ answer: NameAnswer) {
        let done = done
        self.done = nil
        done?(answer)
    }
}
