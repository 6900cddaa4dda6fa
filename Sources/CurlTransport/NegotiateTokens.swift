import HTTPMessage
import Reactor
import Synchronization

/// Tokens of one Kerberos identity for next proxies, made one after the other on a separate thread. A silent KDC delays
/// only this identity's connections. Any thread.
final class NegotiateTokens: Sendable {
    typealias Answer = Result<[UInt8], TransportError>

    private struct Job {
        let host: String
        let deadline: LoopTime
        let done: @Sendable (Answer) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        /// Whether a thread works. It ends when no job is left.
        var isRunning = false
        /// Time before which a refusal does not cost new tickets.
        var forgetsAgain: LoopTime?
        var forgets = false
    }

    /// Number of tokens that may wait, above which further ones fail at once.
    static let mostWaiting = 4096
    /// Time between two requests for new tickets because a proxy refused the old ones.
    private static let forgetting = Duration.seconds(10)
    private static let all = Mutex<[KerberosIdentity: NegotiateTokens]>([:])

    private let tickets: KerberosTickets
    private let state = Mutex(State())

    private init(_ identity: KerberosIdentity) { tickets = KerberosTickets(identity) }

    static func of(_ identity: KerberosIdentity) -> NegotiateTokens {
        all.withLock { all in
            let tokens = all[identity] ?? NegotiateTokens(identity)
            all[identity] = tokens
            return tokens
        }
    }

    /// Asks for a token. Never blocks.
    /// - Parameters:
    ///   - deadline: the token is not made later. The caller keeps time itself.
    ///   - done: called at most once, on any thread.
    func ask(for host: String, before deadline: LoopTime, done: @escaping @Sendable (Answer) -> Void) {
        let starts: Bool? = state.withLock { state in
            state.jobs.removeAll { $0.deadline < .current() }
            guard state.jobs.count < Self.mostWaiting else { return nil }
            state.jobs.append(Job(host: host, deadline: deadline, done: done))
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard let starts else {
            return done(.failure(TransportError(.proxy, message: "too many connections wait for a Kerberos ticket")))
        }
        guard starts else { return }
        do throws(SystemError) { try startThread("kerberos") { self.run() } } catch {
            let jobs = state.withLock { state in
                defer { (state.jobs, state.isRunning) = ([], false) }
                return state.jobs
            }
            for job in jobs { job.done(.failure(TransportError(.proxy, message: "\(error)"))) }
        }
    }

    /// Lets the next token come with new tickets: the proxy refused the last one, so its key may be another now.
    func refused() {
        state.withLock { state in
            let now = LoopTime.current()
            guard state.forgetsAgain.map({ $0 <= now }) ?? true else { return }
            state.forgetsAgain = now + Self.forgetting
            state.forgets = true
        }
    }

    private func run() {
        while let (job, forgets) = next() {
            if forgets { try? tickets.forget() }
            job.done(Result { () throws(TransportError) in try tickets.token(for: job.host) })
        }
    }

    private func next() -> (job: Job, forgets: Bool)? {
        state.withLock { state in
            state.jobs.removeAll { $0.deadline < .current() }
            state.isRunning = !state.jobs.isEmpty
            guard state.isRunning else { return nil }
            defer { state.forgets = false }
            return (state.jobs.removeFirst(), state.forgets)
        }
    }
}

/// The wait of one connection for its token. Loop's thread only.
final class PendingToken {
    private var done: ((NegotiateTokens.Answer) -> Void)?
    private var timer: LoopTimer?

    /// - Parameter done: called once within the deadline, unless this is abandoned before.
    init(
        _ identity: KerberosIdentity, for host: String, before deadline: LoopTime, on loop: EventLoop,
        done: @escaping (NegotiateTokens.Answer) -> Void
    ) {
        self.done = done
        timer = LoopTimer(on: loop) { [unowned self] in
            finish(.failure(Self.late(host)))
        }
        timer?.schedule(at: deadline)
        let bound = LoopBound(self, on: loop)
        NegotiateTokens.of(identity).ask(for: host, before: deadline) { answer in
            loop.execute { bound.value.finish(answer) }
        }
    }

    static func late(_ host: String) -> TransportError {
        TransportError(.proxy, message: "no Kerberos ticket for HTTP/\(host) in time: the KDC does not answer")
    }

    func abandon() {
        done = nil
        timer = nil
    }

    private func finish(_ answer: NegotiateTokens.Answer) {
        let done = done
        abandon()
        done?(answer)
    }
}
