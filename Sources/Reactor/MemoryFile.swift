import CLinux
import Glibc
import Synchronization

/// A file in memory, for libraries that take a path: memfd_create(2), proc_pid_fd(5). The kernel clears its memory
/// after the file is closed.
public final class MemoryFile: Sendable {
    private static let count = Atomic<UInt64>(0)

    private let descriptor: Int32
    /// Path of the file. It differs from the last 511 paths, even if the descriptor's number is the same, because
    /// libcurl caches files by path.
    public let path: String

    /// Copies `bytes` into the file.
    /// - Throws: `SystemError` when the kernel has no memory, or /proc is not readable.
    public init(_ bytes: Span<UInt8>) throws(SystemError) {
        let descriptor = try check("memfd_create", unsafe memfd_create("tls", heimdallr_memory_flags))
        let number = Self.count.add(1, ordering: .relaxed).newValue
        path = "/proc/self/fd" + String(repeating: "/", count: 1 + Int(number % 512)) + "\(descriptor)"
        self.descriptor = descriptor
        var start = 0
        while start < bytes.count {
            let rest = bytes.extracting(start...)
            let written = unsafe rest.withUnsafeBufferPointer { unsafe write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            try check("write", written < 0 ? -1 : 0)
            start += written
        }
        guard unsafe access(path, R_OK) == 0 else { throw SystemError("access", code: errno) }
    }

    deinit { close(descriptor) }
}
