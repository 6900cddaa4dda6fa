import CLinux
import Glibc
import Synchronization

/// A name's addresses, the preferred one first (RFC 6724), or the reason why there are none.
public typealias NameAnswer = Result<[NumericAddress], NameError>

public struct NameError: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}

/// Resolves names on its own threads with getaddrinfo(3), so that /etc/hosts, nsswitch.conf(5) and search domains
/// count. One resolver for the process: all loops share one look-up of a name and its answer. An answer is cached for a
/// few seconds, a failure for one. `NameTable` limits the concurrent look-ups. There is no deadline: the caller sets
/// its own and abandons its question.
public final class NameResolver: Sendable, Equatable {
    public static let shared = NameResolver()

    private struct State {
        var table: NameTable<LoopBound<NameQuestion>>
        var lastID: UInt64 = 0
    }
    private let state: Mutex<State>
    private let lookUp: @Sendable (String) -> NameAnswer

    public convenience init() { self.init(limits: .init(), lookUp: NameResolver.system) }

    /// - Parameter lookUp: may block; called on its own thread.
    init(
        limits: NameTable<LoopBound<NameQuestion>>.Limits = .init(), lookUp: @escaping @Sendable (String) -> NameAnswer
    ) {
        state = Mutex(State(table: NameTable(limits)))
        self.lookUp = lookUp
    }

    public static func == (left: NameResolver, right: NameResolver) -> Bool { left === right }

    /// Asks for the addresses of a name, in any case of letters. Never blocks. On `loop`'s thread only.
    /// - Parameters:
    ///   - isStrange: a client chose the name. Such names never take all look-ups.
    ///   - done: called once with the answer on the loop's thread; before this returns, if the answer is known.
    /// - Returns: the question, to be kept while the answer is wanted; `nil` when the answer was known.
    public func ask(
        _ name: String, isStrange: Bool = false, on loop: EventLoop, done: @escaping (NameAnswer) -> Void
    ) -> NameQuestion? {
        let name = name.lowercased()
        if let address = NumericAddress(name) {
            done(.success([address]))
            return nil
        }
        // Never sent to a name server (RFC 6761, section 6.3).
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
                name, isStrange: isStrange, id: state.lastID, asker: bound, now: .current())
        }
        switch reply {
        case .known(let answer): question.answer(answer)
        case .refused:
            question.answer(.failure(NameError("\(name): too many names are being looked up; the name server hangs")))
        case .pending(let starts):
            if starts { start(name) }
            // If no thread could be started, `finish` has answered with a failure.
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

    /// Ends the wait: `done` is not called any more. The look-up itself goes on.
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
