import Glibc
import WireText

/// Errors of this module: faults of the machine, or of the files in use. Messages name paths, never contents.
public enum CryptographyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// An operation of libcrypto failed. `messages` are libcrypto's own, oldest first.
    case libcrypto(operation: String, messages: [String])
    /// A file could not be read; `reason` is the system's sentence for errno.
    case unreadableFile(path: String, reason: String)
    case fileTooLarge(path: String, limit: Int)
    /// Another system call failed: `operation` on the file or directory, with this errno.
    case system(operation: String, path: String, errno: Int32)
    /// Other users can read or replace a file or directory, so it was not used. `reason` says what to do.
    case untrusted(path: String, reason: String)
    /// A key of this many bytes instead of `SealingKey.size`.
    case keySize(Int)
    case seal(SealFault)
    case key(KeyFault)
    case certificateHost(String)
    case uncoveredHost(String)
    case certificateDomains(Int)

    /// Whether a retry is useless until the configuration or the file system changes.
    public var isLasting: Bool {
        switch self {
        case .untrusted, .keySize, .key, .certificateHost, .uncoveredHost, .certificateDomains: true
        case .system(_, _, let number): number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG
        case .libcrypto, .unreadableFile, .fileTooLarge, .seal: false
        }
    }

    /// Whether a disk is full, or nothing may be made in a directory, although existing files may be written.
    public var isLackOfSpace: Bool {
        if case .system(_, _, let number) = self { [ENOSPC, EDQUOT, EACCES, EPERM].contains(number) } else { false }
    }

    public var description: String {
        switch self {
        case .libcrypto(let operation, let messages): "\(operation) failed: \(messages.joined(separator: "; "))"
        case .unreadableFile(let path, let reason): "can't read \(path): \(reason)"
        case .fileTooLarge(let path, let limit): "\(path) is larger than \(limit) bytes"
        case .system(let operation, let path, let number):
            "can't \(operation) \(path): \(SystemReason.text(for: number))"
        case .untrusted(let path, let reason): "\(path) \(reason)"
        case .keySize(let count): "a key of \(SealingKey.size) bytes is needed, and this one has \(count)"
        case .seal(let fault): fault.description
        case .key(let fault): "the key \(fault)"
        case .certificateHost(let host):
            "no certificate can name \"\(ForeignText.printable(host))\": write a numeric address, or a name of lower-case "
                + "ASCII letters (IDNs as punycode), digits, hyphens and dots, with 253 bytes at most"
        case .uncoveredHost(let host): "\"\(ForeignText.printable(host))\" is outside of the authority's domains"
        case .certificateDomains(let count):
            "an authority takes 1 to \(SigningIntermediate.maxDomains) domains, 30,000 bytes in all, and these are \(count)"
        }
    }
}

/// Reason why sealed bytes can't be opened. Messages put the name of the file or record in front of the description.
public enum SealFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are too short, or don't begin like sealed bytes.
    case foreign
    case format(found: UInt8, supported: UInt8)
    case key
    /// The bytes were changed, or sealed for another context.
    case damaged

    public var description: String {
        switch self {
        case .foreign: "is not a sealed record, or was cut off"
        case .format(let found, let supported):
            "has format \(found), which a\(found > supported ? " later" : "n earlier") version wrote; this one reads "
                + "format \(supported)"
        case .key: "was sealed with another key"
        case .damaged: "was changed or damaged since it was sealed, or belongs to something else"
        }
    }
}
