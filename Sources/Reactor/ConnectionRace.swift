import CLinux
import Glibc

/// Connects to the first of several addresses that accepts (RFC 8305, section 5). Loop's thread only. The end of this
/// object closes its sockets.
public final class ConnectionRace {
    public struct NoneAccepted: Error {
        /// The addresses; without an error, the address was silent.
        public let reasons: [(address: SocketAddress, error: SystemError?)]
    }

    private final class Attempt: ReadinessHandler {
        let index: Int
        let descriptor: Int32
        private unowned let race: ConnectionRace

        init(_ index: Int, _ descriptor: Int32, of race: ConnectionRace) {
            self.index = index
            self.descriptor = descriptor
            self.race = race
        }

        func ready(_ readiness: Readiness) { race.ready(self) }
    }

    /// Limit of concurrent attempts. The next one ends the oldest, so that names chosen by programs cost few descriptors.
    private static let most = 4

    private let addresses: [SocketAddress]
    private let silent: SilentAddresses
    private let deadline: LoopTime
    private let loop: EventLoop
    private var times: AttemptTimes
    private var attempts: [Attempt] = []
    private var failures: [Int: SystemError] = [:]
    private var timer: LoopTimer?
    private var winner: (descriptor: Int32, address: SocketAddress)?
    private var done: ((Result<SocketAddress, NoneAccepted>) -> Void)?

    /// - Parameters:
    ///   - addresses: in the order of the attempts.
    ///   - silent: gets the addresses that another one overtook.
    public init(_ addresses: [SocketAddress], _ silent: SilentAddresses, deadline: LoopTime, on loop: EventLoop) {
        self.addresses = addresses
        self.silent = silent
        self.deadline = deadline
        self.loop = loop
        times = AttemptTimes(count: addresses.count, now: .current(), deadline: deadline)
    }

    deinit {
        end()
        if let winner { close(winner.descriptor) }
    }

    /// - Parameter done: called once with the address that has accepted, possibly before this returns.
    public func start(_ done: @escaping (Result<SocketAddress, NoneAccepted>) -> Void) {
        self.done = done
        proceed()
    }

    /// Returns the connected socket once. The caller then owns it.
    public func take() -> (descriptor: Int32, address: SocketAddress)? {
        defer { winner = nil }
        return winner
    }

    private func proceed() {
        while done != nil, let index = times.next(.current()) { begin(index) }
        guard done != nil else { return }
        if attempts.isEmpty && times.isLast || LoopTime.current() >= deadline {
            return finish(.failure(NoneAccepted(reasons: addresses.indices.map { (addresses[$0], failures[$0]) })))
        }
        if timer == nil { timer = LoopTimer(on: loop) { [unowned self] in proceed() } }
        timer?.schedule(at: times.wake)
    }

    private func begin(_ index: Int) {
        if attempts.count == Self.most { drop(attempts[0]) }
        do throws(SystemError) {
            let descriptor = try check("socket", socket(addresses[index].family, heimdallr_stream_flags, 0))
            let attempt = Attempt(index, descriptor, of: self)
            attempts.append(attempt)
            let result = try unsafe addresses[index].withKernelForm { unsafe connect(descriptor, $0, $1) }
            if result < 0, errno != EINPROGRESS { return failed(attempt, SystemError("connect")) }
            var query = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            // On this machine, a connection mostly is there at once.
            guard unsafe poll(&query, 1, 0) == 0 else { return conclude(attempt) }
            try loop.register(descriptor, handler: attempt)
        } catch {
            if let attempt = attempts.first(where: { $0.index == index }) { return failed(attempt, error) }
            failures[index] = error
            times.failed(.current())
        }
    }

    private func ready(_ attempt: Attempt) {
        conclude(attempt)
        proceed()
    }

    private func conclude(_ attempt: Attempt) {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe getsockopt(attempt.descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        guard code == 0 else { return failed(attempt, SystemError("connect", code: code)) }
        attempts.removeAll { $0 === attempt }
        loop.unregister(attempt.descriptor)
        winner = (attempt.descriptor, addresses[attempt.index])
        silent.note((0..<attempt.index).filter { failures[$0] == nil }.map { addresses[$0] })
        finish(.success(addresses[attempt.index]))
    }

    private func failed(_ attempt: Attempt, _ error: SystemError) {
        drop(attempt)
        failures[attempt.index] = error
        times.failed(.current())
    }

    private func drop(_ attempt: Attempt) {
        attempts.removeAll { $0 === attempt }
        loop.unregister(attempt.descriptor)
        close(attempt.descriptor)
    }

    private func finish(_ result: Result<SocketAddress, NoneAccepted>) {
        let done = done
        self.done = nil
        end()
        done?(result)
    }

    private func end() {
        timer = nil
        while let attempt = attempts.last { drop(attempt) }
    }
}
