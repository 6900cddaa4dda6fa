import CLinux
import Glibc
public import Reactor

/// The end of a process that need not be a child: pidfd_open(2).
public final class ProcessEnd: Sendable {
    private let descriptor: Int32

    /// - Parameter process: a process that can't have ended yet, because it waits for this one.
    /// - Throws: `SystemError` if there is no such process, or the kernel has no descriptor for it.
    public init(of process: Int32) throws(SystemError) {
        descriptor = heimdallr_open_process(process)
        guard descriptor >= 0 else { throw SystemError("pidfd_open") }
    }

    deinit { close(descriptor) }

    /// Calls `ended` on the loop once the process has ended, or at once if it has.
    public func watch(on loop: EventLoop, _ ended: @escaping @Sendable () -> Void) async throws {
        try await loop.run { [self] in
            try loop.register(descriptor, handler: ProcessEndHandler(self, descriptor, on: loop, ended))
        }
    }
}

/// Loop's thread only. The loop holds it until the process ends.
private final class ProcessEndHandler: ReadinessHandler {
    private let process: ProcessEnd
    private let descriptor: Int32
    private let loop: EventLoop
    private var ended: (() -> Void)?

    init(_ process: ProcessEnd, _ descriptor: Int32, on loop: EventLoop, _ ended: @escaping () -> Void) {
        self.process = process
        self.descriptor = descriptor
        self.loop = loop
        self.ended = ended
    }

    func ready(_ readiness: Readiness) {
        let ended = ended
        self.ended = nil
        // Frees this object.
        loop.unregister(descriptor)
        ended?()
    }
}
