public import FileSystem
import WireText

/// Errors of this module: faults of the machine, or of the files in use. Messages name paths, never contents.
public enum CryptographyError: Error, Sendable, Equatable, CustomStringConvertible {
    /// An operation of libcrypto failed. `messages` are libcrypto's own, oldest first.
    case libcrypto(operation: String, messages: [String])
    case file(FileSystem.Fault)
    /// A key of this many bytes instead of `SealingKey.size`.
    case keySize(Int)
    case seal(SealFault)
    case key(KeyFault)
    case certificateHost(String)
    case uncoveredHost(String)
    case certificateDomains(Int)

    public var description: String {
        switch self {
        case .libcrypto(let operation, let messages): "\(operation) failed: \(messages.joined(separator: "; "))"
        case .file(let fault): fault.description
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
