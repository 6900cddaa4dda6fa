import Cryptography
import WireText

/// Makes and opens the placeholders that programs get in a token's place (`issue`). A placeholder is text of `token68` (RFC
/// 9110, section 11.2): a fixed prefix, and in base64url the client, the caller, the end and a MAC. Nothing is stored, so
/// each replica with the same key opens what another one made. A value, for any thread.
struct PlaceholderSeal: Sendable {
    enum Refusal: Error {
        /// Its time is over.
        case ended
        /// Another caller asked for it, or no key of this proxy made it.
        case foreign
        /// It is for another client.
        case elsewhere
    }

    /// Begins each placeholder. Programs that search for leaked secrets find it, too.
    static let prefix = Array("heimdallr1_".utf8)
    /// Time for requests that began before the end, in seconds.
    static let grace: Int64 = 10

    /// The first key makes placeholders. Each key opens them.
    private let keys: [SecretBytes]

    /// - Parameter keys: at least one key, of 32 bytes.
    init(keys: [SecretBytes]) { self.keys = keys }

    /// - Parameters:
    ///   - caller: `Caller.identity` of the request that asks.
    ///   - end: in seconds since 1970.
    func seal(client: String, caller: String, end: Int64) throws(CryptographyError) -> [UInt8] {
        guard let key = keys.first else { throw .keySize(0) }
        let content = try Self.tags(client, caller, key) + UInt64(bitPattern: end).bigEndianBytes
        let sealed = try content + Self.mac(content, key)
        return Self.prefix + Base64.encode(sealed, alphabet: .url).utf8
    }

    /// Checks a placeholder for the use by this caller, for this client.
    /// - Parameter now: in seconds since 1970.
    /// - Returns: the last second in which it may be used.
    @discardableResult
    func open(_ text: Span<UInt8>, client: String, caller: String, now: Int64) throws(Refusal) -> Int64 {
        let prefix = Self.prefix.count
        guard text.count > prefix,
            let sealed = Base64.decode([UInt8](copying: text.extracting(prefix...)), as: .url),
            sealed.count == 2 * Self.tag + 8 + Self.tag
        else { throw .foreign }
        let content = Array(sealed[..<(2 * Self.tag + 8)])
        for key in keys {
            guard let mac = try? Self.mac(content, key), let tags = try? Self.tags(client, caller, key),
                ConstantTime.isEqual(mac, Array(sealed[content.count...]))
            else { continue }
            guard tags[..<Self.tag] == content[..<Self.tag] else { throw .elsewhere }
            guard tags[Self.tag...] == content[Self.tag..<(2 * Self.tag)] else { throw .foreign }
            let end = content[(2 * Self.tag)...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let (last, isEndless) = Int64(bitPattern: end).addingReportingOverflow(Self.grace)
            guard now <= last || isEndless else { throw .ended }
            return last
        }
        throw .foreign
    }

    /// Number of bytes of each tag and of the MAC.
    private static let tag = 16

    private static func mac(_ content: [UInt8], _ key: SecretBytes) throws(CryptographyError) -> [UInt8] {
        Array(try Digest.hmacSHA256([0] + content, key: key).prefix(tag))
    }

    /// Returns what binds a placeholder to client and caller without naming them.
    private static func tags(
        _ client: String, _ caller: String, _ key: SecretBytes
    ) throws(CryptographyError) -> [UInt8] {
        Array(try Digest.hmacSHA256([1] + Array(client.utf8), key: key).prefix(tag))
            + Array(try Digest.hmacSHA256([2] + Array(caller.utf8), key: key).prefix(tag))
    }
}
