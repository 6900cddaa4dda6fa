import Glibc
import Reactor
import Synchronization
import TestSupport

/// Says -1 when it is freed.
final class Canary: Sendable {
    private let log: Recorder<Int>
    init(log: Recorder<Int>) { self.log = log }
    deinit { log.append(-1) }
}

final class Freed {
    private let told: () -> Void
    init(_ told: @escaping () -> Void) { self.told = told }
    deinit { told() }
}

/// A handler that is a closure.
final class Watcher: ReadinessHandler {
    private let told: (Readiness) -> Void
    init(_ told: @escaping (Readiness) -> Void) { self.told = told }
    func ready(_ readiness: Readiness) { told(readiness) }
}

/// Two connected sockets: the near one for the loop, the far one for the test.
final class Pair: Sendable {
    let near: Int32
    private let far: Int32
    private let open = Mutex<(near: Bool, far: Bool)>((true, true))

    init() throws {
        var descriptors: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &descriptors) == 0 else { throw TestFailure("socketpair") }
        near = descriptors[0]
        far = descriptors[1]
    }

    deinit {
        closeNear()
        closeFar()
    }

    func write(_ text: String) { _ = unsafe Glibc.write(far, text, text.utf8.count) }

    func closeNear() {
        open.withLock {
            if $0.near { close(near) }
            $0.near = false
        }
    }

    func closeFar() {
        open.withLock {
            if $0.far { close(far) }
            $0.far = false
        }
    }

    /// Stays open until the process ends.
    func keep() { open.withLock { $0 = (false, false) } }
}
