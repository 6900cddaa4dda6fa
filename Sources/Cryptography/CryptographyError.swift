/// What can go wrong in here: the machine's fault, never the caller's.
public enum CryptographyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// libcrypto refused; its own messages, oldest first.
    case libcrypto(operation: String, messages: [String])
    /// A file could not be read; `reason` is the system's sentence for errno.
    case unreadableFile(path: String, reason: String)
    /// A file is larger than what a secret may be.
    case fileTooLarge(path: String, limit: Int)

    public var description: String {
        switch self {
        case .libcrypto(let operation, let messages): "\(operation) failed: \(messages.joined(separator: "; "))"
        case .unreadableFile(let path, let reason): "can't read \(path): \(reason)"
        case .fileTooLarge(let path, let limit): "\(path) is larger than \(limit) bytes"
        }
    }
}
