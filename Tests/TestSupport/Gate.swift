import Dispatch

/// Holds threads until the test opens the gate for good.
public final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    public init() {}

    /// Blocks the calling thread until the gate is open.
    public func wait() {
        semaphore.wait()
        semaphore.signal()
    }

    /// Lets all threads through, now and later.
    public func open() { semaphore.signal() }
}
