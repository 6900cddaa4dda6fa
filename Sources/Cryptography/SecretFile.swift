import CLibcrypto
import Glibc

/// Files that hold one secret.
public enum SecretFile {
    /// The content of the file at `path`. Blocks for as long as the disk takes, so never on an event loop.
    ///
    /// - Parameter trimsLineEnd: drops one line end at the end, which editors add. Not for raw keys.
    /// - Throws: `CryptographyError.unreadableFile` or `.fileTooLarge` when it holds more than `limit` bytes.
    public static func read(
        path: String, limit: Int = 64 * 1024, trimsLineEnd: Bool = true
    ) throws(CryptographyError) -> SecretBytes {
        // O_NONBLOCK: opening a FIFO without a writer must fail to read, not hang.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw .unreadableFile(path: path, reason: SystemReason.text(for: errno)) }
        defer { close(descriptor) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 1)
        defer {
            unsafe OPENSSL_cleanse(buffer.baseAddress, buffer.count)
            unsafe buffer.deallocate()
        }
        var count = 0
        while count <= limit {
            let read = unsafe Glibc.read(descriptor, buffer.baseAddress?.advanced(by: count), limit + 1 - count)
            if read < 0 {
                if errno == EINTR { continue }
                throw .unreadableFile(path: path, reason: SystemReason.text(for: errno))
            }
            if read == 0 { break }
            count += read
        }
        guard count <= limit else { throw .fileTooLarge(path: path, limit: limit) }
        if trimsLineEnd, count > 0, unsafe buffer[count - 1] == UInt8(ascii: "\n") {
            count -= 1
            if count > 0, unsafe buffer[count - 1] == UInt8(ascii: "\r") { count -= 1 }
        }
        return unsafe SecretBytes(Span(_unsafeBytes: buffer[..<count]))
    }
}
