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

    /// Copies files into one, with a line end after each. open(2), read(2).
    /// - Throws: `SystemError` also for more than `limit` bytes.
    public convenience init(joining paths: [String], limit: Int = 16 << 20) throws(SystemError) {
        var bytes: [UInt8] = []
        for path in paths {
            try Self.append(path, limit, &bytes)
            bytes.append(UInt8(ascii: "\n"))
        }
        try self.init(bytes.span)
    }

    public func hasSameBytes(as other: MemoryFile) -> Bool {
        var (own, others): ([UInt8], [UInt8]) = ([], [])
        do throws(SystemError) {
            try Self.append(path, .max, &own)
            try Self.append(other.path, .max, &others)
        } catch { return false }
        return own == others
    }

    private static func append(_ path: String, _ limit: Int, _ bytes: inout [UInt8]) throws(SystemError) {
        // Without O_NONBLOCK, open(2) would wait for a writer if the file is a FIFO.
        let descriptor = try check("open", unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
        defer { close(descriptor) }
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            try check("read", count < 0 ? -1 : 0)
            guard count > 0 else { return }
            guard bytes.count + count <= limit else { throw SystemError("read", code: EFBIG) }
            bytes += piece[..<count]
        }
    }

    deinit { close(descriptor) }
}
