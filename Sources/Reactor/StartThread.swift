import CLinux
import Glibc

/// Runs `work` on a new, detached thread.
/// - Parameter name: name for ps(1) and debuggers, cut to 15 characters (pthread_setname_np(3)).
/// - Throws: `SystemError` when the kernel gives no thread; `work` does not run then.
public func startThread(_ name: String, _ work: @escaping @Sendable () -> Void) throws(SystemError) {
    var thread = pthread_t()
    let context = unsafe Unmanaged.passRetained(Work(work))
    let result = unsafe pthread_create(
        &thread, nil,
        { context in
            guard let context = unsafe context else { return nil }
            unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
            return nil
        }, context.toOpaque())
    guard result == 0 else {
        unsafe context.release()
        throw SystemError("pthread_create", code: result)
    }
    _ = unsafe pthread_setname_np(thread, String(name.prefix(15)))
    _ = pthread_detach(thread)
}

private final class Work: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
