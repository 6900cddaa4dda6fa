import CLibcrypto
import FileSystem
import Glibc

/// Files that hold one secret.
public enum SecretFile {
    /// Returns the content of the file at `path`. Blocks on the disk: never call it on an event loop.
    ///
    /// - Parameter trimsLineEnd: drops one line end at the end of the file, which editors add. Not for raw keys.
    /// - Throws: `CryptographyError.file`
    public static func read(
        path: String, limit: Int = 64 * 1024, trimsLineEnd: Bool = true
    ) throws(CryptographyError) -> SecretBytes {
        // Without O_NONBLOCK, open(2) would wait for a writer if the file is a FIFO.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw .file(.system(operation: "read", path: path, errno: errno)) }
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
                throw .file(.system(operation: "read", path: path, errno: errno))
            }
            if read == 0 { break }
            count += read
        }
        guard count <= limit else { throw .file(.tooLarge(path: path, limit: limit)) }
        if trimsLineEnd, count > 0, unsafe buffer[count - 1] == UInt8(ascii: "\n") {
            count -= 1
            if count > 0, unsafe buffer[count - 1] == UInt8(ascii: "\r") { count -= 1 }
        }
        return unsafe SecretBytes(Span(_unsafeBytes: buffer[..<count]))
    }
}
