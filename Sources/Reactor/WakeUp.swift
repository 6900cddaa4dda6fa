import CLinux
import Glibc

/// A signal for a thread that waits in poll(2) or epoll_wait(2). After `wake`, the descriptor is readable until
/// `clear`. eventfd(2). Safe on any thread.
public struct WakeUp: ~Copyable, Sendable {
    public let descriptor: Int32

    /// - Throws: `SystemError` if no descriptor is free.
    public init() throws(SystemError) { descriptor = try check("eventfd", eventfd(0, heimdallr_eventfd_flags)) }

    deinit { close(descriptor) }

    public func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    public func clear() {
        var sum: UInt64 = 0
        _ = unsafe read(descriptor, &sum, MemoryLayout<UInt64>.size)
    }
}
